"""One trackside that answers several verbs: the same answers and limits as with a process for each."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from stationmaster.errors import CommandFailed, FalseAnswer, Unreachable
from stationmaster.remote.host import Host
from stationmaster.remote.kept_trackside import KeptTrackside
from stationmaster.remote.pyz import build_pyz
from tests.support.asynchronous_tests import asynchronous, until
from tests.support.machines.machine_bench import Bench, local_bench, ssh_bench
from tests.support.machines.trackside_bench import until_dead
from tests.support.servers.sshd import Sshd, running_sshd

PLAN = {"format": 1, "job": "cat", "steps": [{"name": "train", "argv": ["/bin/sh", "-c", "exec sleep 1000"]}]}

#: What takes the place of trackside on the machine of a stranger: it prints this to whoever asks it to serve.
STRANGER = """
import sys, time
if "serve" in sys.argv:
    token = sys.argv[sys.argv.index("--token") + 1]
    {serving}
else:
    print('{{"data": "YWxvbmU="}}')
"""
NONSENSE = {
    "refuses": "sys.exit(2)",
    "ends at once": "pass",
    "prints without end": "\n    while True: print('x' * 1000)",
    "prints no line": "\n    while True: sys.stdout.write('x' * 1000)",
    "answers with no JSON": "print(token); print('yes', flush=True); sys.stdin.readline(); time.sleep(60)",
    "answers with a list": "print(token); print('[]', flush=True); sys.stdin.readline(); time.sleep(60)",
    "answers with half an object": "print(token); print('{\"status\": 0}', flush=True); time.sleep(60)",
    "answers with a negative size": (
        'print(token); print(\'{"status": 0, "stdout": -5, "stderr": 0}\', flush=True); time.sleep(60)'
    ),
    "answers with a huge error": (
        'print(token); print(\'{"status": 0, "stdout": 1, "stderr": 99999999}\', flush=True); time.sleep(60)'
    ),
    "ends within its answer": 'print(token); print(\'{"status": 0, "stdout": 50, "stderr": 0}\'); print(\'half\')',
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    bench: Bench
    root: Path

    @asynccontextmanager
    async def hosts(self, *, seconds: float = 60.0) -> AsyncIterator[tuple[Host, Host]]:
        """The job with a kept trackside, and with a process for each verb."""
        async with self.bench.remote() as remote:
            kept = KeptTrackside(remote)
            python = str(self.root / "counted python")
            try:
                yield (
                    Host(remote, root=str(self.root), python=python, kept=kept, time_limit_seconds=seconds),
                    Host(remote, root=str(self.root), python=sys.executable, time_limit_seconds=seconds),
                )
            finally:
                await kept.close()

    def starts(self) -> list[int]:
        """The pids of the Pythons that were started for the kept trackside and its single calls."""
        noted = self.root / "starts"
        return [int(line) for line in noted.read_text().split()] if noted.exists() else []

    def becomes_a_stranger(self, serving: str) -> None:
        (self.root / "trackside.pyz").write_text(STRANGER.format(serving=serving))


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@pytest.fixture(scope="module")
def pyz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_pyz(tmp_path_factory.mktemp("pyz"))


def made(bench: Bench, folder: Path, pyz: Path) -> Machine:
    root = folder / "job"
    root.mkdir()
    (root / "trackside.pyz").write_bytes(pyz.read_bytes())
    python = root / "counted python"
    python.write_text(f"#!/bin/sh\necho $$ >> '{root}/starts'\nexec '{sys.executable}' \"$@\"\n")
    python.chmod(0o755)
    return Machine(bench=bench, root=root)


@pytest.fixture
def local(tmp_path: Path, pyz: Path) -> Machine:
    (tmp_path / "machine").mkdir()
    return made(local_bench(tmp_path / "machine"), tmp_path, pyz)


@pytest.fixture(params=["local", "ssh"])
def machine(request: pytest.FixtureRequest, tmp_path: Path, pyz: Path) -> Machine:
    if request.param == "local":
        made_local: Machine = request.getfixturevalue("local")
        return made_local
    (tmp_path / "machine").mkdir()
    return made(ssh_bench(tmp_path / "machine", request.getfixturevalue("sshd").settings()), tmp_path, pyz)


@asynchronous
async def test_a_jobs_verbs_are_answered_by_one_process_as_by_many(machine: Machine) -> None:
    async with machine.hosts() as (kept, single):
        await kept.put_plan(PLAN)
        assert (await kept.start()).started
        try:
            async with asyncio.timeout(150):
                while (await kept.status()).steps[0].pid is None:  # known a moment after the step is running
                    await asyncio.sleep(0.05)
            ours, theirs = await kept.status(alone_seconds=60), await single.status()
            assert (ours.steps, ours.supervisor, ours.boot_id) == (theirs.steps, theirs.supervisor, theirs.boot_id)
            assert await kept.hash(["plan.json", "nothing"]) == await single.hash(["plan.json", "nothing"])
            assert await kept.first_bytes("plan.json", 9) == await single.first_bytes("plan.json", 9)
            assert await kept.inventory() == await single.inventory()
            await kept.visit(60)
            for host in (kept, single):
                with pytest.raises(CommandFailed, match=r"status 1: trackside: .*No such file .*nothing"):
                    await host.first_bytes("nothing", 9)
        finally:
            stopped = await kept.stop(0)
    assert stopped.finished is not None
    assert len(machine.starts()) == 1


@asynchronous
async def test_the_training_and_its_supervisor_go_on_when_it_is_closed(machine: Machine) -> None:
    async with machine.hosts() as (kept, single):
        await kept.put_plan(PLAN)
        await kept.start()
    (pid,) = machine.starts()
    until_dead(pid)
    async with machine.hosts() as (_, single):
        assert (await single.status()).supervisor.alive
        await single.stop(0)


@asynchronous
async def test_one_that_was_killed_is_replaced(machine: Machine) -> None:
    async with machine.hosts() as (kept, _):
        wanted = await kept.hash(["trackside.pyz"])
        os.kill(machine.starts()[0], signal.SIGKILL)
        assert await kept.hash(["trackside.pyz"]) == wanted
        assert await kept.hash(["trackside.pyz"]) == wanted
    assert len(machine.starts()) == 2


@asynchronous
async def test_one_that_is_killed_while_a_verb_runs_is_replaced_and_the_verb_runs_again(machine: Machine) -> None:
    os.mkfifo(machine.root / "pipe")
    async with machine.hosts() as (kept, _):
        reading = asyncio.create_task(kept.first_bytes("pipe", 4))
        await until(lambda: len(machine.starts()) == 1, what="the start")
        pipe = await asyncio.to_thread(os.open, machine.root / "pipe", os.O_WRONLY)  # waits for the reader
        held = os.open(machine.root / "pipe", os.O_RDWR)  # so that it never is without a reader
        os.kill(machine.starts()[0], signal.SIGKILL)
        await until(lambda: len(machine.starts()) == 2, what="the second start")
        while not reading.done():  # the verb that nobody waits for any more reads from the pipe too
            os.write(pipe, b"word")
            await asyncio.sleep(0.05)
        assert await reading == b"word"
        os.close(pipe)
        os.close(held)


@asynchronous
async def test_a_verb_that_takes_too_long_is_given_up_and_the_next_one_is_answered(machine: Machine) -> None:
    os.mkfifo(machine.root / "pipe")
    async with machine.hosts(seconds=3.0) as (kept, _):
        with pytest.raises(Unreachable, match="did not answer within 3 s"):
            await kept.first_bytes("pipe", 4)
        until_dead(machine.starts()[0])
        os.close(os.open(machine.root / "pipe", os.O_RDWR))  # ends the verb, which may go on alone
    async with machine.hosts() as (kept, _):
        assert await kept.hash(["nothing"]) == {"nothing": None}


@asynchronous
async def test_an_answer_that_is_too_long_is_a_false_one_and_the_next_one_is_answered(machine: Machine) -> None:
    async with machine.hosts() as (kept, _):
        argv = [str(machine.root / "counted python"), str(machine.root / "trackside.pyz"), "--root", str(machine.root)]
        run = KeptTrackside(kept.remote)
        with pytest.raises(FalseAnswer, match="more than 10 bytes"):
            await run.run([*argv, "hash", "trackside.pyz"], timeout=60, most_bytes=10)
        done = await run.run([*argv, "hash", "nothing"], timeout=60)
        assert done.stdout == b'{"files": {"nothing": null}}\n'
        await run.close()


@asynchronous
async def test_a_replaced_trackside_answers_at_once_and_the_old_one_is_gone(local: Machine) -> None:
    async with local.hosts() as (kept, _):
        await kept.hash(["nothing"])
        fresh = local.root / "fresh"
        fresh.write_text(STRANGER.format(serving="sys.exit(2)"))
        fresh.replace(local.root / "trackside.pyz")
        assert await kept.first_bytes("anything", 9) == b"alone"
        until_dead(local.starts()[0])


@pytest.mark.parametrize("serving", NONSENSE.values(), ids=NONSENSE.keys())
@asynchronous
async def test_a_machine_that_answers_nonsense_is_asked_in_the_old_way(local: Machine, serving: str) -> None:
    local.becomes_a_stranger(serving)
    async with local.hosts() as (kept, _):
        assert await kept.first_bytes("anything", 9) == b"alone"
        until_dead(local.starts()[0])
        assert await kept.first_bytes("anything", 9) == b"alone"
    assert len(local.starts()) == 3, "it was asked to serve more than once"


@asynchronous
async def test_more_bytes_than_a_verb_may_print_are_not_read(local: Machine) -> None:
    local.becomes_a_stranger(
        'print(token); print(\'{"status": 0, "stdout": 99999999999, "stderr": 0}\', flush=True)\n'
        "    while True: print('x' * 1000)"
    )
    async with local.hosts() as (kept, _):
        with pytest.raises(FalseAnswer, match="answered with more than"):
            await kept.first_bytes("anything", 9)
        until_dead(local.starts()[0])


@asynchronous
async def test_a_machine_that_is_silent_is_asked_in_the_old_way_the_next_time(local: Machine) -> None:
    local.becomes_a_stranger("time.sleep(600)")
    async with local.hosts(seconds=1.0) as (kept, _):
        with pytest.raises(Unreachable, match="did not answer within 1 s"):
            await kept.first_bytes("anything", 9)
        until_dead(local.starts()[0])
    # The limit of the second call is another one: a start of Python may take longer than a second.
    async with local.hosts() as (kept, _):
        local.becomes_a_stranger("sys.exit(2)")
        assert await kept.first_bytes("anything", 9) == b"alone"


@asynchronous
async def test_what_a_login_prints_first_is_skipped(local: Machine) -> None:
    python = local.root / "counted python"
    python.write_text(python.read_text().replace("exec", "echo 'Welcome to your machine!'; echo\nexec"))
    async with local.hosts() as (kept, _):
        assert await kept.hash(["nothing"]) == {"nothing": None}
        assert await kept.hash(["nothing"]) == {"nothing": None}
    assert len(local.starts()) == 1


@asynchronous
async def test_beside_a_verb_that_takes_long_another_has_a_process_of_its_own(local: Machine) -> None:
    os.mkfifo(local.root / "pipe")
    async with local.hosts() as (kept, _):
        reading = asyncio.create_task(kept.first_bytes("pipe", 4))
        pipe = await asyncio.to_thread(os.open, local.root / "pipe", os.O_WRONLY)  # waits for the reader
        assert await kept.hash(["nothing"]) == {"nothing": None}
        assert not reading.done()
        os.write(pipe, b"word")
        assert await reading == b"word"
        os.close(pipe)
    assert len(local.starts()) == 2


@asynchronous
async def test_a_call_that_is_cancelled_leaves_no_answer_for_the_next_one(local: Machine) -> None:
    os.mkfifo(local.root / "pipe")
    async with local.hosts() as (kept, _):
        await kept.hash(["nothing"])
        reading = asyncio.create_task(kept.first_bytes("pipe", 4))
        pipe = await asyncio.to_thread(os.open, local.root / "pipe", os.O_WRONLY)  # waits for the reader
        reading.cancel()
        await asyncio.wait([reading])
        os.close(pipe)
        assert await kept.hash(["nothing"]) == {"nothing": None}


def test_it_ends_with_its_input_and_when_nobody_asks(local: Machine) -> None:
    command = [sys.executable, str(local.root / "trackside.pyz"), "--root", str(local.root), "serve", "--token", "now"]
    at_the_end = subprocess.run(command, input=b"", capture_output=True, check=True)
    assert at_the_end.stdout == b"now\n"
    with subprocess.Popen([*command, "--idle", "0.2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as forgotten:
        assert forgotten.wait(timeout=150) == 0
