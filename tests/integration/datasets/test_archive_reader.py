from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path
from typing import Literal

import pytest

from stationmaster.datasets.archive_reader import open_dataset
from stationmaster.datasets.pack import fingerprint, pack
from stationmaster.errors import DatasetInvalid, DiskFull, NotFound
from tests.support.jobs.dataset_pictures import good_set

TAR_MODES: dict[str, Literal["w:", "w:gz", "w:xz"]] = {".tar": "w:", ".tar.gz": "w:gz", ".tar.xz": "w:xz"}


def tar_with(path: Path, *members: tuple[tarfile.TarInfo, bytes], mode: Literal["w", "w:gz"] = "w") -> Path:
    with tarfile.open(path, mode) as archive:
        for info, content in members:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def named(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def test_a_folder_is_used_as_it_is(tmp_path: Path) -> None:
    with open_dataset(tmp_path) as folder:
        assert folder == tmp_path


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz", ".tar.xz", ".zip"])
@pytest.mark.parametrize("inside", ["", "my set/"])
def test_an_archive_holds_the_same_dataset_as_its_folder(tmp_path: Path, suffix: str, inside: str) -> None:
    source, archive = good_set(tmp_path / "set"), tmp_path / f"set{suffix}"
    files = sorted(source.iterdir(), reverse=True)
    if suffix == ".zip":
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            for file in files:
                packed.write(file, inside + file.name)
    else:
        with tarfile.open(archive, TAR_MODES[suffix]) as tar:
            for file in files:
                tar.add(file, inside + file.name)
    with open_dataset(archive, scratch=tmp_path) as folder:
        assert fingerprint(folder) == fingerprint(source)
    assert not list(tmp_path.glob("stationmaster-dataset-*"))


def test_our_own_archive_packs_to_the_same_bytes_again(tmp_path: Path) -> None:
    first = pack(good_set(tmp_path / "set"), tmp_path / "1.tar")
    with open_dataset(first.path) as folder:
        assert pack(folder, tmp_path / "2.tar").sha256 == first.sha256


@pytest.mark.parametrize(
    "member",
    [
        named("/etc/evil"),
        named("../evil"),
        named("a/../../evil"),
        named("link", tarfile.SYMTYPE, "/etc/passwd"),
        named("hard", tarfile.LNKTYPE, "/etc/passwd"),
        named("device", tarfile.CHRTYPE),
        named("pipe", tarfile.FIFOTYPE),
    ],
    ids=lambda info: info.name,
)
def test_an_archive_that_reaches_out_is_refused(tmp_path: Path, member: tarfile.TarInfo) -> None:
    archive = tar_with(tmp_path / "set.tar", (named("good.txt"), b"x"), (member, b""))
    with (
        pytest.raises(DatasetInvalid, match=r"link or a device|points outside of it"),
        open_dataset(archive, scratch=tmp_path),
    ):
        pass
    assert [file.name for file in tmp_path.iterdir()] == ["set.tar"]


def test_a_zip_that_reaches_out_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        archive.writestr("../evil.txt", "x")
    archive_path = tmp_path / "set.zip"
    with pytest.raises(DatasetInvalid, match="points outside of it"), open_dataset(archive_path, scratch=tmp_path):
        pass
    assert not (tmp_path.parent / "evil.txt").exists()


def test_an_archive_that_unfolds_beyond_the_disk_is_refused_before_it_is_written(tmp_path: Path) -> None:
    info = named("huge.bin")
    info.size = 10 << 40
    (tmp_path / "set.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    with pytest.raises(DiskFull, match="MB are free"), open_dataset(tmp_path / "set.tar", scratch=tmp_path):
        pass


@pytest.mark.parametrize("cut", [10, 700, 5000])
@pytest.mark.parametrize("suffix", [".tar.gz", ".zip"])
def test_a_damaged_archive_is_one_clear_error(tmp_path: Path, suffix: str, cut: int) -> None:
    source, archive = good_set(tmp_path / "set"), tmp_path / f"set{suffix}"
    if suffix == ".zip":
        with zipfile.ZipFile(archive, "w") as packed:
            for file in source.iterdir():
                packed.write(file, file.name)
    else:
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(source, "set")
    archive.write_bytes(archive.read_bytes()[:cut])
    with pytest.raises(DatasetInvalid, match=r"is damaged|cannot be unpacked"), open_dataset(archive):
        pass


def test_a_name_that_comes_twice_is_refused(tmp_path: Path) -> None:
    archive = tar_with(tmp_path / "set.tar", (named("a.txt"), b"1"), (named("a.txt"), b"2"))
    with pytest.raises(DatasetInvalid, match="cannot be unpacked"), open_dataset(archive):
        pass


def test_a_text_file_is_no_dataset(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(DatasetInvalid), open_dataset(tmp_path / "notes.txt"):
        pass
    with pytest.raises(NotFound), open_dataset(tmp_path / "nowhere"):
        pass
