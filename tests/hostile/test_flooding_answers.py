"""A machine may say as much as it likes: what is read of an answer, and made of it, has a limit."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from stationmaster.errors import FalseAnswer, MachineFault
from stationmaster.model.intake_limits import JSON_VALUES, MIB, OUTPUT_FILES, VERB_BYTES
from stationmaster.remote.base import Completed
from stationmaster.remote.fake import Call, FakeRemote
from stationmaster.remote.host import Host
from stationmaster.remote.ssh import SshRemote
from stationmaster.remote.status import Since
from tests.support.asynchronous_tests import asynchronous
from tests.support.capabilities import require
from tests.support.servers.sshd import Sshd, running_sshd

FLOOD_BYTES = 700 * MIB
STATUS: dict[str, Any] = {"wall": 1.0, "monotonic": 1.0, "started": True}

FLOODER = """\
import os, sys
sent, block = 0, b"x" * 65536
try:
    while sent < int(sys.argv[1]):
        sent += os.write(1, block)
finally:
    open(sys.argv[2], "w").write(str(sent))
"""


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    require("sshd")
    with running_sshd(tmp_path_factory.mktemp("sshd")) as sshd:
        yield sshd


def answering(answer: bytes | dict[str, Any]) -> Host:
    """A machine that answers everything with this."""
    remote = FakeRemote()
    text = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    remote.on("python3", lambda call: Completed(exit_status=0, stdout=text))
    return Host(remote, root="/job")


@asynchronous
async def test_an_answer_of_700_mib_is_read_up_to_its_limit_and_no_further(sshd: Sshd, tmp_path: Path) -> None:
    """What a real server has sent by then is bounded by the channel's window, not by the flood."""
    (tmp_path / "trackside.pyz").write_text(FLOODER)
    remote = SshRemote(sshd.settings())
    try:
        with pytest.raises(FalseAnswer, match=f"more than {VERB_BYTES['status']:,} bytes"):
            await remote.run(
                [sys.executable, "-c", FLOODER, str(FLOOD_BYTES), str(tmp_path / "sent")],
                timeout=150,
                most_bytes=VERB_BYTES["status"],
            )
        done = await remote.run(["sh", "-c", f"while [ ! -s {tmp_path}/sent ]; do sleep 0.05; done"], timeout=150)
        assert done.exit_status == 0
    finally:
        await remote.close()
    assert int((tmp_path / "sent").read_text()) < 32 * MIB


@pytest.mark.parametrize("verb", ["status", "start", "stop", "inventory", "hash", "preflight", "save", "cleanup"])
@asynchronous
async def test_every_verb_has_a_limit_for_its_answer(verb: str) -> None:
    host = answering(b'{"ok": true, "padding": "' + b"x" * 5 * MIB + b'"}')
    calls: dict[str, Any] = {
        "status": host.status,
        "start": host.start,
        "stop": host.stop,
        "inventory": host.inventory,
        "hash": lambda: host.hash(["a"]),
        "preflight": host.preflight,
        "save": lambda: host.save("1"),
        "cleanup": host.cleanup,
    }
    with pytest.raises(FalseAnswer, match="the rest was not read"):
        await calls[verb]()


@asynchronous
async def test_a_line_of_a_stream_that_never_ends_is_given_up_at_its_limit() -> None:
    sent = 0

    async def endless(call: Call) -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += MIB
            yield b"{" * MIB

    remote = FakeRemote()
    remote.on_stream("python3", endless)
    async with aclosing(Host(remote, root="/job").follow(Since())) as statuses:
        with pytest.raises(FalseAnswer):
            await anext(statuses)
    assert sent <= VERB_BYTES["follow"] + 2 * MIB


@pytest.mark.parametrize(
    "answer",
    [
        b'{"steps": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"steps": [' + b"0," * JSON_VALUES + b"0]}",
        b'{"wall": NaN, "monotonic": 1, "started": true}',
        b'{"wall": 1e400, "monotonic": 1, "started": true}',
        b'{"wall": ' + b"9" * 5000 + b', "monotonic": 1, "started": true}',
        b'{"wall": true, "monotonic": 1, "started": true}',
        b"{\n" * 500_000,
        b'"all is well"',
        b'{"wall": 1, "monotonic": 1, "started": true, "log": [{"stream": "0.1", "start": 9, "end": 3, "data": ""}]}',
    ],
    ids=["deep", "many values", "nan", "infinite", "a number of 5,000 digits", "a boolean", "many lines", "a text",
         "a log that ends before it begins"],
)  # fmt: skip
@asynchronous
async def test_an_answer_that_no_honest_machine_gives_is_a_fault_of_the_machine(answer: bytes) -> None:
    with pytest.raises(MachineFault):
        await answering(answer).status()


@asynchronous
async def test_of_more_outputs_than_a_job_may_have_the_rest_is_counted_and_left_out() -> None:
    files = [{"path": f"output/{n}.png", "kind": "sample", "size": 1, "mtime": 1.0} for n in range(OUTPUT_FILES + 500)]
    status = await answering({**STATUS, "outputs": files, "outputs_left_out": 7}).status()
    assert (len(status.outputs), status.outputs_left_out) == (OUTPUT_FILES, 507)
    inventory = await answering({"outputs": files, "left_out": 0}).inventory()
    assert (len(inventory.files), inventory.left_out) == (OUTPUT_FILES, 500)


@asynchronous
async def test_logs_of_invented_streams_and_positions_do_not_accumulate() -> None:
    pieces = [{"stream": name, "start": 0, "end": 9, "data": ""} for name in ("../x", "a" * 1000, "1.1\n", "9.9.9")]
    pieces += [{"stream": f"{n}.1", "start": 0, "end": 9, "data": ""} for n in range(5000)]
    status = await answering({**STATUS, "log": pieces}).status()
    since = Since()
    for _ in range(3):
        since = since.after(status)
    assert len(since.log) <= 512
    assert all(stream.replace(".", "").isdecimal() for stream in since.log)
