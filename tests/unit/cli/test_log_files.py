"""A log that cannot be read is refused in one line that says why, with a hint."""

from __future__ import annotations

import random
from pathlib import Path, PosixPath
from typing import Any

import pytest

from stationmaster.cli.log_files import read_chunks
from stationmaster.cli.parse import parse
from stationmaster.cli.replay import replay
from stationmaster.errors import NotFound, UserError


class _Locked(PosixPath):
    """A file that another user may read; root, who runs some tests, could read any real one."""

    def open(self, *_arguments: Any, **_options: Any) -> Any:
        raise PermissionError(13, "Permission denied", str(self))


def _unreadable(folder: Path) -> dict[str, tuple[Path, str]]:
    binary, utf_16 = folder / "model.bin", folder / "windows.log"
    binary.write_bytes(random.Random(1).randbytes(50_000))
    utf_16.write_bytes("step 1/9 loss 0.5\n".encode("utf-16"))
    return {
        "missing": (folder / "nowhere.log", "there is no file .*nowhere.log"),
        "folder": (folder, "is a folder, not a log"),
        "locked": (_Locked(folder / "locked.log"), "cannot read .*locked.log: permission denied"),
        "below a file": (binary / "x", "cannot read .*model.bin/x: Not a directory"),
        "binary": (binary, "model.bin is a binary file, not a log"),
        "UTF-16": (utf_16, "windows.log is UTF-16 text"),
    }


@pytest.mark.parametrize("kind", ["missing", "folder", "locked", "below a file", "binary", "UTF-16"])
@pytest.mark.parametrize("command", [parse, replay])
def test_what_is_no_readable_log_is_refused(command: Any, kind: str, tmp_path: Path) -> None:
    path, words = _unreadable(tmp_path)[kind]
    with pytest.raises(UserError, match=words) as refused:
        command(path)
    assert "\n" not in str(refused.value)
    assert refused.value.hint
    assert isinstance(refused.value, NotFound) == (kind == "missing")


def test_weights_behind_a_long_text_are_found_too(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes(b'{"name": "weights"} ' * 100_000 + random.Random(1).randbytes(2_000_000))
    with pytest.raises(UserError, match="binary"):
        list(read_chunks(file))


@pytest.mark.parametrize(
    "text",
    [
        b"\x1b[32mstep 1/9\x1b[0m loss 0.5\r\x1b[Kstep 2/9\x08\x08\n",
        b"step 1/9 loss 0.5\n" + b"\x00" * 4096 + b"step 1/9\n",  # a host that died
        "学習開始 step 1/9\n".encode("gbk", "ignore") * 50,
        b"",
    ],
)
def test_what_terminals_and_dying_hosts_write_is_a_log(text: bytes, tmp_path: Path) -> None:
    file = tmp_path / "train.log"
    file.write_bytes(text)
    assert b"".join(read_chunks(file)) == text
