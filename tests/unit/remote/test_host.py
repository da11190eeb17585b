"""Host over a machine that says whatever the test wants."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from stationmaster.errors import CommandFailed, TransferFailed, Unreachable
from stationmaster.remote.base import Completed
from stationmaster.remote.fake import Call, ConnectionFault, FakeRemote
from stationmaster.remote.host import Host
from stationmaster.remote.kept_trackside import KeptTrackside
from stationmaster.remote.status import LogMark, Since
from tests.support.asynchronous_tests import asynchronous

STATUS = {"wall": 1.0, "monotonic": 1.0, "started": True}


class Answering:
    """A FakeRemote whose python3 gives one answer and remembers what it was asked."""

    def __init__(self, stdout: bytes | dict[str, Any], *, exit_status: int | None = 0, stderr: bytes = b"") -> None:
        self.remote = FakeRemote()
        self.host = Host(self.remote, root="/jobs/7/")
        self.calls: list[Call] = []
        said = stdout if isinstance(stdout, bytes) else json.dumps(stdout).encode()
        self._answer = Completed(exit_status=exit_status, stdout=said, stderr=stderr)
        self.remote.on("python3", self._handle)

    def _handle(self, call: Call) -> Completed:
        self.calls.append(call)
        return self._answer


@asynchronous
async def test_a_banner_before_the_answer_is_passed_over() -> None:
    banner = b"Welcome to vast.ai!\n{not json}\n[1, 2]\n"
    assert (await Answering(banner + json.dumps(STATUS).encode() + b"\n").host.status()).started


@pytest.mark.parametrize(
    ("said", "quoted"),
    [(b"", "nothing"), (b"bash: fork: no memory\nmore", "bash: fork: no memory"), (b"[]", r"\[\]"), (b"{}", r"\{\}")],
)
@asynchronous
async def test_an_answer_that_makes_no_sense_is_an_error_with_its_first_line(said: bytes, quoted: str) -> None:
    with pytest.raises(CommandFailed, match=f"no valid answer: {quoted}"):
        await Answering(said).host.status()


@asynchronous
async def test_a_failing_call_says_why() -> None:
    with pytest.raises(CommandFailed, match=r"status 1: trackside: there is no plan"):
        await Answering(b"", exit_status=1, stderr=b"trackside: there is no plan\n").host.start()


@asynchronous
async def test_an_unknown_end_is_unreachable_even_if_something_was_said() -> None:
    with pytest.raises(Unreachable):
        await Answering(STATUS, exit_status=None).host.status()
    with pytest.raises(Unreachable):
        await Answering({"files": {}}, exit_status=None).host.hash(["x"])


@asynchronous
async def test_secrets_travel_on_standard_input_and_nowhere_else() -> None:
    answering = Answering(STATUS)
    await answering.host.start({"HF_TOKEN": "hf_secret"})
    (call,) = answering.calls
    assert call.argv[4:] == ("start", "--secrets-stdin")
    assert json.loads(call.input or b"") == {"secrets": {"HF_TOKEN": "hf_secret"}}
    assert "hf_secret" not in repr((call.argv, call.env, answering.remote.calls))


@asynchronous
async def test_each_verb_is_one_call_with_its_arguments() -> None:
    answering = Answering(STATUS)
    await answering.host.start()
    await answering.host.status(
        Since(log={"0.1": LogMark(inode=3, offset=9)}, series={"StepMetric": 2}), max_bytes=1000
    )
    await answering.host.stop(2.5)
    head = ("python3", "/jobs/7/trackside.pyz", "--root", "/jobs/7")
    assert [call.argv[:4] for call in answering.calls] == [head] * 3
    start, status, stop = (call.argv[4:] for call in answering.calls)
    assert start == ("start",)
    assert (status[:2], status[3:]) == (("status", "--since"), ("--max-bytes", "1000"))
    assert json.loads(status[2]) == {"log": {"0.1": {"inode": 3, "offset": 9}}, "series": {"StepMetric": 2}}
    assert stop == ("stop", "--grace", "2.5")


@asynchronous
async def test_hashes_tell_missing_files_apart() -> None:
    answering = Answering({"files": {"a": {"sha256": "0" * 64, "size": 3}, "b": None}})
    found = await answering.host.hash(["a", "b"])
    assert found["a"] is not None
    assert (found["a"].sha256, found["a"].size, found["b"]) == ("0" * 64, 3, None)
    with pytest.raises(CommandFailed):
        await Answering({"files": {"a": {"size": 3}}}).host.hash(["a"])


@asynchronous
async def test_an_archive_with_the_wrong_hash_is_a_failed_transfer() -> None:
    with pytest.raises(TransferFailed, match=r"beef.*cafe"):
        await Answering({"ok": False, "sha256": "beef"}, exit_status=1).host.unpack("a.tar", "dataset", "cafe")
    answering = Answering({"ok": True, "sha256": "c" * 64, "files": 3})
    unpacked = await answering.host.unpack("a.tar", "dataset", "c" * 64)
    assert (unpacked.files, unpacked.already) == (3, False)


@asynchronous
async def test_a_followed_job_comes_in_whole_lines_whatever_the_chunks() -> None:
    text = b"Welcome!\n" + b"".join(json.dumps({**STATUS, "wall": wall}).encode() + b"\n" for wall in range(5))

    async def in_pieces(call: Call) -> AsyncIterator[bytes]:
        for start in range(0, len(text), 7):
            yield text[start : start + 7]

    remote = FakeRemote()
    remote.on_stream("python3", in_pieces)
    async with aclosing(Host(remote, root="/jobs/7").follow()) as statuses:
        assert [status.wall async for status in statuses] == [0, 1, 2, 3, 4]


@asynchronous
async def test_following_a_machine_without_trackside_is_an_error() -> None:
    host = Answering(b"", exit_status=2, stderr=b"python3: can't open file").host
    with pytest.raises(CommandFailed, match="can't open file"):
        await anext(host.follow())


@asynchronous
async def test_trackside_is_sent_once(tmp_path: Path) -> None:
    (tmp_path / "pyz").write_bytes(b"abc")
    sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    remote = FakeRemote()

    def answer(call: Call) -> Completed:
        data = remote.files.get("/jobs/7/trackside.pyz")
        if data is None:
            return Completed(exit_status=2, stderr=b"can't open file")
        found = sha256 if data == b"abc" else "0" * 64
        return Completed(
            exit_status=0, stdout=json.dumps({"files": {"trackside.pyz": {"sha256": found, "size": 3}}}).encode()
        )

    remote.on("python3", answer)
    host = Host(remote, root="/jobs/7")
    for _ in range(2):
        await host.install(tmp_path / "pyz")
    assert [call for call in remote.calls if call[0] == "push"] == [("push", "/jobs/7/trackside.pyz")]
    remote.files.clear()
    remote.fail(ConnectionFault.CORRUPT, only="push")
    with pytest.raises(TransferFailed):
        await host.install(tmp_path / "pyz")


@asynchronous
async def test_many_small_actions_are_one_visit_and_one_that_failed_is_repeated() -> None:
    machine = Answering(b"", exit_status=1, stderr=b"trackside: no space left\n")
    host = Host(machine.remote, root="/jobs/7", kept=KeptTrackside(machine.remote))
    for _ in range(2):
        with pytest.raises(CommandFailed, match="no space left"):
            await host.visit(60)
    assert len(machine.calls) == 2
    well = Answering(b"")
    for _ in range(3):
        await Host(well.remote, root="/jobs/7", kept=(kept := KeptTrackside(well.remote))).visit(60)
        await Host(well.remote, root="/jobs/7", kept=kept).visit(60)
    assert len(well.calls) == 3, "one for each machine that is known anew"
