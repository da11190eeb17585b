"""Files are hashed and replaced in one way everywhere."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from stationmaster.files import known_sha256_of, sha256_of, write_atomically


def test_the_hash_is_that_of_the_content(tmp_path: Path) -> None:
    content = bytes(range(256)) * 5000
    (tmp_path / "file").write_bytes(content)
    assert sha256_of(tmp_path / "file") == hashlib.sha256(content).hexdigest()


def test_a_known_hash_is_that_of_the_content_also_after_a_change_of_the_same_length(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in ("one", "one", "two"):
        write_atomically(path, content)
        assert known_sha256_of(path) == hashlib.sha256(content.encode()).hexdigest()
    path.unlink()
    with pytest.raises(FileNotFoundError):
        known_sha256_of(path)


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("content", ["größer\n", b"\0\xff"])
def test_a_file_is_replaced_and_nothing_else_stays(tmp_path: Path, content: str | bytes, *, durable: bool) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    write_atomically(path, content, durable=durable)
    assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert [*tmp_path.iterdir()] == [path]


def test_a_reader_of_the_old_file_keeps_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with path.open() as reading:
        write_atomically(path, "new")
        assert reading.read() == "old"


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_a_mode_is_set_whatever_the_old_file_had(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o666)
    write_atomically(path, "new", mode=mode)
    assert path.stat().st_mode & 0o777 == mode


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_atomically(tmp_path / "file", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
