"""Sets of small files: they go together, by both ways, and are judged by their hashes as everything is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from stationmaster.errors import TransferFailed
from stationmaster.files import sha256_of
from stationmaster.remote.base import SupportsMany
from stationmaster.remote.transfer import Sending, push_all_verified
from tests.support.asynchronous_tests import asynchronous, names_in
from tests.support.capabilities import require
from tests.support.chaos.link_cuts import broken_link
from tests.support.servers.sshd import Sshd

NASTY = ("with space", "$(touch never)", "'quoted'", "ünïcode", "-rf", "a;b", "[x]*?")


def sendings(folder: Path, count: int) -> list[Sending]:
    folder.mkdir()
    made = []
    for number in range(count):
        name = f"{number} {NASTY[number % len(NASTY)]}.txt"
        (folder / name).write_text(f"caption {number}")
        made.append(Sending(local=folder / name, path=f"set {number % 3}/deep/{name}", sha256=sha256_of(folder / name)))
    return made


def pictures(folder: Path, sizes: Sequence[int]) -> list[Sending]:
    folder.mkdir()
    made = [folder / f"{number:02}.png" for number in range(len(sizes))]
    for path, size in zip(made, sizes, strict=True):
        path.write_bytes(os.urandom(size))
    return [Sending(local=path, path=f"set/{path.name}", sha256=sha256_of(path)) for path in made]


@pytest.mark.parametrize("way", ["sftp", "rsync"])
@asynchronous
async def test_many_small_files_arrive_whole_and_only_missing_ones_go_again(
    sshd: Sshd, tmp_path: Path, way: str
) -> None:
    if way == "rsync":
        require("rsync")
    files = sendings(tmp_path / "source", 150)
    told: list[tuple[int, int]] = []
    async with broken_link(sshd, tmp_path, way=way) as (host, proxy):
        connections = proxy.connections
        sent = await push_all_verified(host, files, progress=lambda *moved: told.append(moved))
        assert len(sent) == 150
        assert (proxy.connections > connections) == (way == "rsync")
        for file in files:
            assert Path(host.path(file.path)).read_bytes() == file.local.read_bytes()
        Path(host.path(files[0].path)).unlink()
        Path(host.path(files[1].path)).write_text("caption X")  # as long as it was
        assert await push_all_verified(host, files) == {files[0].path, files[1].path}
        assert await push_all_verified(host, files) == frozenset()
        for number in range(3):
            expected = sorted(Path(file.path).name for file in files if file.path.startswith(f"set {number}/"))
            assert names_in(Path(host.path(f"set {number}/deep"))) == expected
    total = sum(file.local.stat().st_size for file in files)
    assert told[-1] == (total, total)
    assert not list(tmp_path.rglob("never"))


@asynchronous
async def test_a_recipes_files_go_together_however_few_they_are(sshd: Sshd, tmp_path: Path) -> None:
    """One by one they took about 340 round trips: 40 seconds on a line of 150 ms."""
    files = sendings(tmp_path / "source", 13)
    async with broken_link(sshd, tmp_path) as (host, proxy):
        before = proxy.round_trips
        await push_all_verified(host, files)
        assert proxy.round_trips - before < 100
        for file in files:
            assert Path(host.path(file.path)).read_bytes() == file.local.read_bytes()


@pytest.mark.parametrize("count", [3, 20])
@asynchronous
async def test_pictures_of_any_size_go_together(sshd: Sshd, tmp_path: Path, count: int) -> None:
    """OpenSSH closes the connection at a message of more than 256 KiB."""
    sizes = [(0, 100, 262_144, 300_000, 4_000_000)[-1 - number % 5] for number in range(count)]
    files = pictures(tmp_path / "source", sizes)
    told: list[tuple[int, int]] = []
    async with broken_link(sshd, tmp_path) as (host, _):
        assert len(await push_all_verified(host, files, progress=lambda *moved: told.append(moved))) == count
        assert names_in(Path(host.path("set"))) == sorted(file.local.name for file in files)
    assert told == sorted(told)
    assert told[-1] == (sum(sizes), sum(sizes))


@asynchronous
async def test_on_a_slow_line_it_is_enough_that_something_moves(sshd: Sshd, tmp_path: Path) -> None:
    files = {file.path: file.local for file in pictures(tmp_path / "source", [1_500_000] * 2)}
    async with broken_link(sshd, tmp_path) as (host, proxy):
        proxy.bytes_per_second = 500_000
        assert isinstance(host.remote, SupportsMany)
        await host.remote.push_many(files, host.root, timeout_idle=4.0)


@pytest.mark.parametrize("way", ["sftp", "rsync"])
@asynchronous
async def test_a_place_that_cannot_be_written_is_a_failed_transfer(sshd: Sshd, tmp_path: Path, way: str) -> None:
    if way == "rsync":
        require("rsync")
    files = sendings(tmp_path / "source", 20)
    async with broken_link(sshd, tmp_path, way=way) as (host, _):
        Path(host.path(files[1].path), "a folder where a file should be").mkdir(parents=True)
        with pytest.raises(TransferFailed, match="touch never"):
            await push_all_verified(host, files)


@asynchronous
async def test_a_file_in_the_way_of_a_folder_is_named(sshd: Sshd, tmp_path: Path) -> None:
    files = sendings(tmp_path / "source", 3)
    async with broken_link(sshd, tmp_path) as (host, _):
        Path(host.path("set 1")).write_text("a file of the same name")
        with pytest.raises(TransferFailed, match="set 1 is not a directory"):
            await push_all_verified(host, files)
        with pytest.raises(TransferFailed, match="set 1 is not a directory"):
            await push_all_verified(host, files[1:2])
