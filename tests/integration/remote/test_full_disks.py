"""A disk without room, on either side: named with numbers, before anything moves or when it fills; no part is left."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stationmaster.errors import DiskFull
from stationmaster.files import sha256_of
from stationmaster.remote.transfer import Sending, pull_verified, push_all_verified, push_verified
from tests.support.asynchronous_tests import asynchronous, names_in
from tests.support.chaos.link_cuts import broken_link, known
from tests.support.machines.small_disk import small_disk
from tests.support.servers.sshd import Sshd

MIB = 2**20
WAYS = ["sftp", "rsync"]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", mebibytes=120) as mounted:
        yield mounted


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_bytes(os.urandom(24 * MIB))
    return path


def somebody_fills(disk: Path) -> Callable[[int, int], None]:
    """Called with progress: the disk is full from the first bytes on."""
    filler = disk / "filler"

    def fill(_done: int, _total: int) -> None:
        if not filler.exists():
            with filler.open("wb") as file:
                try:
                    while True:
                        file.write(bytes(MIB))
                except OSError:
                    pass  # full, as it was meant to be

    return fill


@pytest.mark.parametrize("way", WAYS)
@asynchronous
async def test_a_machine_s_disk_that_fills_up_meanwhile_is_named_with_numbers_and_no_part_is_left(
    sshd: Sshd, source: Path, disk: Path, way: str
) -> None:
    async with broken_link(sshd, disk, way=way) as (host, proxy):
        proxy.bytes_per_second = 100 * MIB
        with pytest.raises(DiskFull, match=r"the machine.*25,165,824 bytes, [\d,]+ are free"):
            await push_verified(host, source, "in/there", sha256_of(source), progress=somebody_fills(disk))
        assert names_in(Path(host.path("in"))) == []


@pytest.mark.parametrize("way", WAYS)
@asynchronous
async def test_our_own_disk_that_fills_up_meanwhile_is_named_with_numbers_and_no_part_is_left(
    sshd: Sshd, source: Path, disk: Path, tmp_path: Path, way: str
) -> None:
    (disk / "home").mkdir()
    async with broken_link(sshd, tmp_path, way=way) as (host, proxy):
        proxy.bytes_per_second = 100 * MIB
        with pytest.raises(DiskFull, match=r"this computer.*25,165,824 bytes, [\d,]+ are free"):
            await pull_verified(host, str(source), disk / "home" / "here", known(source), progress=somebody_fills(disk))
    assert names_in(disk / "home") == []


@asynchronous
async def test_nothing_moves_where_there_is_no_room_for_it(sshd: Sshd, tmp_path: Path, disk: Path) -> None:
    source = tmp_path / "big"
    with source.open("wb") as file:
        file.truncate(100 * MIB)
    sha256 = sha256_of(source)
    async with broken_link(sshd, disk) as (host, proxy):
        before = proxy.bytes_passed
        with pytest.raises(DiskFull, match=r"not enough room on the machine.*104,857,600 bytes"):
            await push_verified(host, source, "there", sha256)
        with pytest.raises(DiskFull, match=r"not enough room on this computer.*104,857,600 bytes"):
            await pull_verified(host, str(source), disk / "here", known(source))
        assert proxy.bytes_passed - before < MIB


@asynchronous
async def test_room_is_asked_for_what_is_made_of_the_files_too(sshd: Sshd, source: Path, disk: Path) -> None:
    async with broken_link(sshd, disk) as (host, _):
        sending = [Sending(local=source, path="dataset.tar", sha256=sha256_of(source))]
        with pytest.raises(DiskFull, match=r"130,023,424 bytes"):
            await push_all_verified(host, sending, further_bytes=100 * MIB)
        await push_all_verified(host, sending, further_bytes=0)
