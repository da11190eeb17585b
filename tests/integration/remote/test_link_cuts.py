"""Transfers over links that break: always equal in the end, little sent twice, nothing left behind."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from stationmaster.errors import Unreachable
from stationmaster.files import sha256_of
from stationmaster.remote.resumable import CHUNK_BYTES
from stationmaster.remote.transfer import pull_verified, push_verified
from tests.support.asynchronous_tests import asynchronous
from tests.support.capabilities import require
from tests.support.chaos.link_cuts import broken_link, known, move_there_and_back
from tests.support.servers.sshd import Sshd

MIB = 2**20


@pytest.mark.parametrize("way", ["sftp", "rsync"])
def test_a_file_survives_a_cut_of_each_kind_each_way(sshd: Sshd, tmp_path: Path, way: str) -> None:
    """With this seed each way has one cut of each kind, so late that a transfer from the start again is too much."""
    if way == "rsync":
        require("rsync")

    async def survive() -> None:
        async with asyncio.timeout(250), broken_link(sshd, tmp_path, way=way) as (host, proxy):
            await move_there_and_back(host, proxy, tmp_path, size=64_000_000, cuts=3, seed=34)

    asyncio.run(survive())


@asynchronous
async def test_a_damaged_partial_file_is_repaired_piece_by_piece(sshd: Sshd, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(os.urandom(12 * MIB))
    sha256 = sha256_of(source)
    async with broken_link(sshd, tmp_path) as (host, proxy):
        for way in ("push", "pull"):
            proxy.cut_after_bytes = proxy.bytes_passed + 9 * MIB
            move = (
                (lambda: push_verified(host, source, "there", sha256))
                if way == "push"
                else (lambda: pull_verified(host, "there", tmp_path / "back", known(source)))
            )
            with pytest.raises(Unreachable):
                await move()
            folder = tmp_path if way == "pull" else Path(host.root)
            (part,) = [file for file in folder.iterdir() if file.suffix in (".part", ".fetching")]
            with part.open("r+b") as file:
                file.write(b"not what was sent")
            before = proxy.bytes_passed
            await move()
            assert proxy.bytes_passed - before < 12 * MIB - CHUNK_BYTES
        assert sha256_of(tmp_path / "back") == sha256 == sha256_of(Path(host.root, "there"))
