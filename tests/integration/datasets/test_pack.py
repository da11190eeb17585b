from __future__ import annotations

import hashlib
import importlib
import os
import subprocess
import tarfile
import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.datasets.archive_writer import Compression
from stationmaster.datasets.pack import fingerprint, pack, pack_into, read_manifest, record_file, write_manifest
from stationmaster.datasets.tree import files_of, scan
from stationmaster.errors import DatasetInvalid, DiskFull, NotFound, UserError

# Names as hostile as a disk allows: quotes, line breaks, substitutions, any script, long ones.
NAMES = st.one_of(
    st.sampled_from(
        ["it's.txt", 'a "b".txt', "two\nlines", "$(id).png", "`id`", "-rf", "é.txt", "e\u0301.txt", "猫", " "]
    ),
    st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=40),
    st.integers(min_value=90, max_value=200).map(lambda length: "x" * length),
).filter(lambda name: not name.startswith(".") and len(name.encode()) < 250)
TREES = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=3).map("/".join), st.binary(max_size=2000), min_size=1, max_size=8
)


def write_tree(root: Path, tree: dict[str, bytes]) -> dict[str, bytes]:
    """Write what fits together; a name that is both file and folder keeps the first meaning."""
    written = {}
    for path, content in tree.items():
        try:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)
        except OSError:
            continue
        written[path] = content
    return written


def contents(root: Path) -> dict[str, bytes]:
    return {file.relative_to(root).as_posix(): file.read_bytes() for file in root.rglob("*") if file.is_file()}


@given(tree=TREES, order=st.randoms(use_true_random=False))
def test_same_content_gives_same_bytes_whatever_the_disk_says(tree: dict[str, bytes], order: Random) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        one, other = Path(temporary, "one"), Path(temporary, "deep", "other")
        written = write_tree(one, tree)
        shuffled = list(written.items())
        order.shuffle(shuffled)
        before = os.umask(0o077)
        try:
            write_tree(other, dict(shuffled))
        finally:
            os.umask(before)
        for number, file in enumerate(sorted(other.rglob("*"))):
            os.utime(file, (number * 1000, number * 1000))
            file.chmod(0o700)
            if os.geteuid() == 0:
                os.chown(file, 1234, 5678)
        first, second = pack(one, Path(temporary, "1.tar")), pack(other, Path(temporary, "2.tar"))
        assert first.path.read_bytes() == second.path.read_bytes()
        assert first.sha256 == second.sha256 == hashlib.sha256(first.path.read_bytes()).hexdigest()
        assert first.fingerprint == fingerprint(one) == fingerprint(other)


@given(tree=TREES)
def test_system_tar_and_python_unpack_the_same_files(tree: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        source, by_tar, by_python = (Path(temporary, name) for name in ("source", "tar", "python"))
        written = write_tree(source, tree)
        packed = pack(source, Path(temporary, "set.tar"))
        by_tar.mkdir()
        subprocess.run(["tar", "-xf", packed.path, "-C", by_tar], check=True)
        with tarfile.open(packed.path) as archive:
            if hasattr(tarfile, "data_filter"):  # Debian 12 has a Python from before it
                archive.extraction_filter = tarfile.data_filter
            archive.extractall(by_python)
        assert contents(by_tar) == contents(by_python) == written


@given(tree=TREES)
def test_the_manifest_names_every_file_with_its_hash(tree: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        written = write_tree(Path(temporary, "source"), tree)
        packed = pack(Path(temporary, "source"), Path(temporary, "set.tar"))
        listed = {file.path: (file.size, file.sha256) for file in packed.manifest.files}
        assert listed == {path: (len(data), hashlib.sha256(data).hexdigest()) for path, data in written.items()}
        assert list(listed) == sorted(listed, key=str.encode)
        assert packed.files == len(written)


def test_the_archive_format_does_not_drift(tmp_path: Path) -> None:
    """A changed hash here means that every dataset would be sent again: raise the format version if it is meant."""
    write_tree(tmp_path / "set", {"a.png": b"one", "sub/é.txt": b"two", "sub/" + "n" * 120: b"", "z z": bytes(1000)})
    packed = pack(tmp_path / "set", tmp_path / "set.tar")
    assert packed.size == 10240
    assert packed.sha256 == "84b911c02d061f342dd0562ef1067aa4b59fe9bd00c1ca384c162cc757b87f17"
    assert packed.fingerprint == "30a0adf51f9d71254bd8b179ea90338fd541777f438c06be2dc0975a6d02935c"


def test_any_change_of_name_or_content_changes_the_fingerprint(tmp_path: Path) -> None:
    trees = [{"a": b"1"}, {"a": b"2"}, {"b": b"1"}, {"a": b"1", "b": b""}, {"d/a": b"1"}]
    for number, tree in enumerate(trees):
        write_tree(tmp_path / str(number), tree)
    assert len({fingerprint(tmp_path / str(number)) for number in range(len(trees))}) == len(trees)


def test_files_larger_than_one_chunk_are_packed_whole(tmp_path: Path) -> None:
    content = os.urandom(3_500_001)
    write_tree(tmp_path / "set", {"big.png": content, "small.txt": b"x"})
    packed = pack(tmp_path / "set", tmp_path / "set.tar")
    with tarfile.open(packed.path) as archive:
        member = archive.extractfile("big.png")
        assert member is not None
        assert member.read() == content


def test_hidden_files_are_left_out(tmp_path: Path) -> None:
    write_tree(tmp_path / "set", {"a.png": b"a", ".DS_Store": b"x", ".git/config": b"y", "__MACOSX/b": b"z"})
    assert [file.path for file in read_manifest(tmp_path / "set").files] == ["a.png"]


def test_a_link_inside_the_folder_is_packed_as_the_file_it_means(tmp_path: Path) -> None:
    write_tree(tmp_path / "linked", {"a.txt": b"text"})
    (tmp_path / "linked" / "b.txt").symlink_to("a.txt")
    write_tree(tmp_path / "plain", {"a.txt": b"text", "b.txt": b"text"})
    assert fingerprint(tmp_path / "linked") == fingerprint(tmp_path / "plain")


@pytest.mark.parametrize("target", ["/etc/hostname", "../outside.txt", "nowhere", ".", "loop"])
def test_a_link_that_leads_elsewhere_is_refused(tmp_path: Path, target: str) -> None:
    (tmp_path / "outside.txt").write_text("secret")
    write_tree(tmp_path / "set", {"a.txt": b"a"})
    (tmp_path / "set" / "loop").symlink_to(target)
    with pytest.raises(DatasetInvalid, match="loop cannot be packed"):
        pack(tmp_path / "set", tmp_path / "set.tar")
    assert not (tmp_path / "set.tar").exists()


def test_a_pipe_in_the_folder_is_refused_and_does_not_hang(tmp_path: Path) -> None:
    write_tree(tmp_path / "set", {"a.txt": b"a"})
    os.mkfifo(tmp_path / "set" / "b.txt")
    with pytest.raises(DatasetInvalid, match="neither a file nor a folder"):
        pack(tmp_path / "set", tmp_path / "set.tar")


def test_a_name_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / os.fsdecode(b"caf\xe9.png")).write_bytes(b"a")
    with pytest.raises(DatasetInvalid, match=r"caf\\xe9.png is not UTF-8"):
        pack(tmp_path / "set", tmp_path / "set.tar")


@pytest.mark.parametrize("change", ["grow", "shrink", "rewrite", "replace", "remove", "pipe"])
def test_a_file_that_changed_since_it_was_seen_is_an_error(tmp_path: Path, change: str) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"before")
    (entry,) = files_of(scan(tmp_path))
    change_file(file, change)
    with pytest.raises(DatasetInvalid, match=r"a\.txt changed while it was being read"):
        record_file(entry, lambda _: None)


@pytest.mark.parametrize("change", ["grow", "shrink", "rewrite"])
def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path: Path, change: str) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(os.urandom(3 << 20))
    (entry,) = files_of(scan(tmp_path))
    pieces: list[bytes] = []

    def take(data: bytes) -> None:
        if not pieces:
            change_file(file, change)
        pieces.append(data)

    with pytest.raises(DatasetInvalid, match=r"a\.txt changed while it was being read"):
        record_file(entry, take)


def change_file(file: Path, change: str) -> None:
    size = file.stat().st_size
    if change == "grow":
        with file.open("ab") as opened:
            opened.write(b"more")
    elif change == "shrink":
        os.truncate(file, 1)
    elif change == "rewrite":
        with file.open("r+b") as opened:
            opened.write(b"X" * size)
        os.utime(file, ns=(1, 1))
    else:
        file.unlink()
        if change == "replace":
            file.write_bytes(b"other!")
        elif change == "pipe":
            os.mkfifo(file)


def test_a_failed_pack_leaves_nothing_behind_and_the_old_archive_whole(tmp_path: Path) -> None:
    write_tree(tmp_path / "set", {"a.txt": b"a"})
    old = pack(tmp_path / "set", tmp_path / "out" / "set.tar")
    (tmp_path / "set" / "broken").symlink_to("nowhere")
    with pytest.raises(DatasetInvalid):
        pack(tmp_path / "set", tmp_path / "out" / "set.tar")
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["set.tar"]
    assert hashlib.sha256(old.path.read_bytes()).hexdigest() == old.sha256


def test_a_dataset_larger_than_the_disk_is_refused_with_the_numbers(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    with (tmp_path / "set" / "huge.bin").open("wb") as file:
        file.truncate(10 << 40)  # a hole: takes no room itself
    with pytest.raises(DiskFull, match=r"needs 10,995,1.* MB .* MB are free"):
        pack(tmp_path / "set", tmp_path / "set.tar")
    assert not list(tmp_path.glob("*.tar")) + list(tmp_path.glob(".*"))


def test_an_archive_named_by_its_hash_is_found_again(tmp_path: Path) -> None:
    write_tree(tmp_path / "set", {"a.txt": b"a"})
    first, second = (pack_into(tmp_path / "set", tmp_path / "cache") for _ in range(2))
    assert first == second
    assert first.path.name == f"{first.sha256}.tar"
    assert [file.name for file in (tmp_path / "cache").iterdir()] == [first.path.name]


def test_the_manifest_is_written_beside_the_archive(tmp_path: Path) -> None:
    write_tree(tmp_path / "set", {"a.txt": b"a"})
    packed = pack(tmp_path / "set", tmp_path / "set.tar")
    path = write_manifest(packed)
    assert path.name == "set.tar.manifest.json"
    assert packed.fingerprint in path.read_text()


def test_an_archive_inside_its_own_dataset_is_refused(tmp_path: Path) -> None:
    write_tree(tmp_path / "set", {"a.txt": b"a"})
    with pytest.raises(UserError, match="inside the dataset folder"):
        pack(tmp_path / "set", tmp_path / "set" / "new" / "set.tar")
    assert not (tmp_path / "set" / "new").exists()


def test_a_target_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    write_tree(tmp_path / "set", {"a.txt": b"a"})
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(UserError, match="cannot write to"):
        pack(tmp_path / "set", tmp_path / "file" / "set.tar")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match="cannot write to"):
        pack(tmp_path / "set", tmp_path / "folder")


def test_nothing_to_pack_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetInvalid, match="no files to pack"):
        pack(tmp_path / "empty", tmp_path / "set.tar")
    with pytest.raises(NotFound):
        pack(tmp_path / "missing", tmp_path / "set.tar")


def test_zstd_gives_the_same_tar_inside_or_says_what_is_missing(tmp_path: Path) -> None:
    write_tree(tmp_path / "set", {f"{number}.txt": b"caption " * 100 for number in range(50)})
    plain = pack(tmp_path / "set", tmp_path / "set.tar")
    try:
        zstandard = importlib.import_module("zstandard")
    except ModuleNotFoundError:
        with pytest.raises(UserError, match="needs the zstandard module") as caught:
            pack(tmp_path / "set", tmp_path / "set.tar.zst", compression=Compression.ZSTD)
        assert "pip install zstandard" in str(caught.value.hint)
        return
    small = pack(tmp_path / "set", tmp_path / "set.tar.zst", compression=Compression.ZSTD)
    assert small.size < plain.size
    assert small.fingerprint == plain.fingerprint
    assert small.sha256 == hashlib.sha256(small.path.read_bytes()).hexdigest()
    with small.path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as content:
        assert content.read() == plain.path.read_bytes()
