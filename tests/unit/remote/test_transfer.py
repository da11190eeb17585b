from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from stationmaster.errors import DiskFull, TransferFailed, Unreachable
from stationmaster.files import sha256_of
from stationmaster.remote.fake import ConnectionFault, FakeRemote
from stationmaster.remote.fake_trackside import FakeTrackside
from stationmaster.remote.host import FileHash, Host
from stationmaster.remote.transfer import pull_verified, push_verified
from tests.support.asynchronous_tests import asynchronous, names_in

DATA = b"a model" * 1000
SHA256 = hashlib.sha256(DATA).hexdigest()
KNOWN = FileHash(sha256=SHA256, size=len(DATA))


class Bench:
    def __init__(self, folder: Path) -> None:
        self.remote = FakeRemote()
        self.trackside = FakeTrackside(self.remote)
        self.remote.files["/job/trackside.pyz"] = b""
        self.host = Host(self.remote, root="/job")
        self.here = folder / "model"
        self.here.write_bytes(DATA)

    def transfers(self) -> int:
        return sum(call[0] in ("push", "pull") for call in self.remote.calls)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@asynchronous
async def test_a_pushed_file_is_sent_once(bench: Bench) -> None:
    for _ in range(2):
        await push_verified(bench.host, bench.here, "in/model", SHA256)
    assert bench.remote.files["/job/in/model"] == DATA
    assert bench.transfers() == 1


@asynchronous
async def test_a_push_with_wrong_bytes_is_repeated_once(bench: Bench) -> None:
    bench.remote.fail(ConnectionFault.CORRUPT, only="push")
    await push_verified(bench.host, bench.here, "in/model", SHA256)
    assert bench.remote.files["/job/in/model"] == DATA
    assert bench.transfers() == 2


@asynchronous
async def test_a_push_that_is_wrong_twice_fails(bench: Bench) -> None:
    bench.remote.fail(ConnectionFault.CORRUPT, only="push", times=2)
    with pytest.raises(TransferFailed, match=SHA256):
        await push_verified(bench.host, bench.here, "in/model", SHA256)
    assert bench.transfers() == 2


@asynchronous
async def test_a_push_whose_answer_was_lost_is_not_sent_again(bench: Bench) -> None:
    bench.remote.fail(ConnectionFault.CUT_AFTER, only="push")
    with pytest.raises(Unreachable):
        await push_verified(bench.host, bench.here, "in/model", SHA256)
    await push_verified(bench.host, bench.here, "in/model", SHA256)
    assert bench.transfers() == 1


@asynchronous
async def test_nothing_is_sent_to_a_machine_without_room(bench: Bench) -> None:
    bench.trackside.disk_free_bytes = 10_240
    with pytest.raises(DiskFull, match=r"7,000 bytes.*10,240 are free"):
        await push_verified(bench.host, bench.here, "in/model", SHA256)
    assert bench.transfers() == 0


@pytest.mark.parametrize("known", [None, KNOWN])
@asynchronous
async def test_a_pulled_file_is_fetched_once(bench: Bench, tmp_path: Path, known: FileHash | None) -> None:
    bench.remote.files["/job/output/model"] = DATA
    target = tmp_path / "models" / "mine"
    for _ in range(2):
        assert await pull_verified(bench.host, "output/model", target, known) == target
    assert sha256_of(target) == SHA256
    assert names_in(target.parent) == ["mine"]
    assert bench.transfers() == 1


@asynchronous
async def test_a_different_file_of_the_same_size_is_fetched(bench: Bench, tmp_path: Path) -> None:
    bench.remote.files["/job/output/model"] = DATA
    (tmp_path / "mine").write_bytes(DATA[::-1])
    await pull_verified(bench.host, "output/model", tmp_path / "mine")
    assert sha256_of(tmp_path / "mine") == SHA256


@asynchronous
async def test_a_pull_that_is_wrong_twice_leaves_the_old_file(bench: Bench, tmp_path: Path) -> None:
    bench.remote.files["/job/output/model"] = DATA
    target = tmp_path / "models" / "mine"
    target.parent.mkdir()
    target.write_bytes(b"the old one")
    bench.remote.fail(ConnectionFault.CORRUPT, only="pull", times=2)
    with pytest.raises(TransferFailed, match=SHA256):
        await pull_verified(bench.host, "output/model", target)
    assert target.read_bytes() == b"the old one"
    assert names_in(target.parent) == ["mine"]
    await pull_verified(bench.host, "output/model", target)
    assert target.read_bytes() == DATA


@pytest.mark.parametrize("known", [None, KNOWN])
@asynchronous
async def test_a_file_that_is_not_there_is_a_failed_transfer(
    bench: Bench, tmp_path: Path, known: FileHash | None
) -> None:
    with pytest.raises(TransferFailed, match=r"not on the machine|no such file"):
        await pull_verified(bench.host, "output/none", tmp_path / "mine", known)


@asynchronous
async def test_a_machine_that_does_not_answer_is_not_a_missing_file(bench: Bench, tmp_path: Path) -> None:
    bench.remote.fail(ConnectionFault.VANISHED, times=None)
    for known in (None, KNOWN):
        with pytest.raises(Unreachable):
            await pull_verified(bench.host, "output/model", tmp_path / "mine", known)
