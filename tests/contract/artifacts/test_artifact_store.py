"""What every place for files promises."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from stationmaster.delivery.artifact_store import ArtifactStore
from stationmaster.errors import DeliveryError, TransferFailed

KEY = "job-1/output/a model with spaces & ünicode.safetensors"


def a_file(folder: Path, content: bytes, name: str = "source") -> tuple[Path, str]:
    path = folder / name
    path.write_bytes(content)
    return path, hashlib.sha256(content).hexdigest()


def test_what_was_put_comes_back(store: ArtifactStore, tmp_path: Path) -> None:
    source, sha256 = a_file(tmp_path, b"weights" * 1000)
    kept = store.put(KEY, source, sha256=sha256)
    store.get(KEY, tmp_path / "deep" / "back", sha256=sha256)
    assert (tmp_path / "deep" / "back").read_bytes() == source.read_bytes()
    assert (kept.key, kept.size) == (KEY, 7000)
    assert kept.location == f"{store.place}/{KEY}"
    assert store.find(KEY) == kept


def test_a_large_file_goes_in_parts_and_tells_how_far_it_is(store: ArtifactStore, tmp_path: Path) -> None:
    source, sha256 = a_file(tmp_path, bytes(range(256)) * 4096 * 11)  # 11 MiB
    said: list[tuple[int, int]] = []
    store.put(KEY, source, sha256=sha256, progress=lambda done, total: said.append((done, total)))
    store.get(KEY, tmp_path / "back", sha256=sha256)
    assert hashlib.sha256((tmp_path / "back").read_bytes()).hexdigest() == sha256
    assert said[-1] == (11 << 20, 11 << 20)
    assert [done for done, _ in said] == sorted(done for done, _ in said)


def test_an_empty_file_is_a_file(store: ArtifactStore, tmp_path: Path) -> None:
    source, sha256 = a_file(tmp_path, b"")
    store.put(KEY, source, sha256=sha256)
    store.get(KEY, tmp_path / "back", sha256=sha256)
    assert (tmp_path / "back").read_bytes() == b""


def test_putting_the_same_again_changes_nothing_and_putting_something_else_replaces(
    store: ArtifactStore, tmp_path: Path
) -> None:
    first, first_hash = a_file(tmp_path, b"first")
    second, second_hash = a_file(tmp_path, b"second", "other")
    assert store.put(KEY, first, sha256=first_hash) == store.put(KEY, first, sha256=first_hash)
    store.put(KEY, second, sha256=second_hash)
    store.get(KEY, tmp_path / "back", sha256=second_hash)
    assert (tmp_path / "back").read_bytes() == b"second"


def test_a_file_that_is_not_what_was_promised_is_not_kept(store: ArtifactStore, tmp_path: Path) -> None:
    source, _ = a_file(tmp_path, b"something else by now")
    with pytest.raises(TransferFailed):
        store.put(KEY, source, sha256=hashlib.sha256(b"promised").hexdigest())
    assert store.find(KEY) is None


def test_other_bytes_under_the_key_are_no_answer(store: ArtifactStore, tmp_path: Path) -> None:
    source, sha256 = a_file(tmp_path, b"what was put")
    store.put(KEY, source, sha256=sha256)
    target, _ = a_file(tmp_path, b"what was there before", "target")
    with pytest.raises(TransferFailed):
        store.get(KEY, target, sha256=hashlib.sha256(b"wanted").hexdigest())
    with pytest.raises(TransferFailed):
        store.get("job-1/nothing", target, sha256=sha256)
    assert target.read_bytes() == b"what was there before"
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["source", "target"]


def test_a_fetch_that_broke_off_goes_on_where_it_was(store: ArtifactStore, tmp_path: Path) -> None:
    content = bytes(range(256)) * 8192  # 2 MiB
    source, sha256 = a_file(tmp_path, content)
    store.put(KEY, source, sha256=sha256)
    (tmp_path / f".{sha256[:16]}.fetching").write_bytes(content[: 1 << 20])
    said: list[int] = []
    store.get(KEY, tmp_path / "back", sha256=sha256, progress=lambda done, _: said.append(done))
    assert (tmp_path / "back").read_bytes() == content
    if store.place.startswith("s3://"):
        assert min(said) > 1 << 20


def test_files_are_listed_by_folder_and_removed(store: ArtifactStore, tmp_path: Path) -> None:
    source, sha256 = a_file(tmp_path, b"x")
    for key in ("job-1/b", "job-1/a/c", "job-10/d"):
        store.put(key, source, sha256=sha256)
    assert [one.key for one in store.listed("job-1/")] == ["job-1/a/c", "job-1/b"]
    store.remove("job-1/b")
    store.remove("job-1/b")
    assert [one.key for one in store.listed("job-1/")] == ["job-1/a/c"]
    assert store.find("job-1/b") is None


@pytest.mark.parametrize("key", ["../escape", "/etc/passwd", "a/../../b", ""])
def test_no_key_leads_out_of_the_store(store: ArtifactStore, tmp_path: Path, key: str) -> None:
    source, sha256 = a_file(tmp_path, b"x")
    with pytest.raises(DeliveryError):
        store.put(key, source, sha256=sha256)
