"""Logs over a real SSH server: from where the last read ended, through rotations, reconnects and new addresses."""

from __future__ import annotations

import asyncio
import getpass
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from stationmaster.control.monitoring.fleet import Fleet
from stationmaster.control.monitoring.look import MonitorLook
from stationmaster.control.monitoring.monitor import Monitor, Warnings
from stationmaster.control.monitoring.sources import LogPiece, LogPosition, Sighting
from stationmaster.control.monitoring.ssh_logs import SshLogs
from stationmaster.errors import CommandFailed, ConfigInvalid, Unreachable
from stationmaster.model import SshAccess
from stationmaster.remote.connect import connect
from tests.support.asynchronous_tests import asynchronous, until
from tests.support.monitoring.scripted_source import ScriptedSource, listed
from tests.support.servers.ports import own_port
from tests.support.servers.sshd import Sshd, running_sshd
from tests.support.servers.tcp_proxy import TcpProxy, tcp_proxy


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


class Machine:
    """A machine behind the SSH server, with a log in a folder whose name needs quoting."""

    def __init__(self, sshd: Sshd, folder: Path) -> None:
        self.access = SshAccess(
            host="127.0.0.1",
            port=sshd.port,
            user=getpass.getuser(),
            job_root="",
            key_path=str(sshd.client_key),
            unverified=True,
        )
        self.sighting = Sighting(id="7", status="running", accesses=(self.access,))
        self.log = folder / "out put" / "run 1" / "training.log"
        self.log.parent.mkdir(parents=True)
        self.logs = SshLogs(
            key_path=sshd.client_key,
            connect=connect,
            log_path=str(folder / "out put" / "*" / "training.log"),
            pause_seconds=0.05,
            login_seconds=120.0,
        )

    async def news(self, since: LogPosition, size: int = 1) -> LogPiece:
        """What was added since a position, as soon as it has come; at least `size` bytes."""
        data = b""
        async with asyncio.timeout(30.0):
            while True:
                piece = await self.logs.read(self.sighting, since)
                data, since = (data if piece.continues else b"") + piece.data, piece.position
                if len(data) >= size or not piece.continues:
                    return replace(piece, data=data)
                await asyncio.sleep(0.02)

    def at(self, port: int) -> Sighting:
        return replace(self.sighting, accesses=(replace(self.access, port=port),))


@asynccontextmanager
async def machine_of(sshd: Sshd, folder: Path) -> AsyncIterator[Machine]:
    machine = Machine(sshd, folder)
    try:
        yield machine
    finally:
        await machine.logs.close()


@asynchronous
async def test_the_first_read_is_the_end_and_later_ones_are_what_was_added(sshd: Sshd, tmp_path: Path) -> None:
    async with machine_of(sshd, tmp_path) as machine:
        machine.log.write_text("".join(f"line {number}\n" for number in range(500)) + "unended")
        first = await machine.logs.read(machine.sighting, None)
        assert first.data.decode().splitlines()[0] == "line 401"
        assert first.data.endswith(b"line 499\nunended")
        assert (first.continues, first.position.offset) == (False, machine.log.stat().st_size)
        same = await machine.logs.read(machine.sighting, first.position)
        assert (same.data, same.continues, same.position) == (b"", True, first.position)
        with machine.log.open("a") as file:
            file.write(" line\nnext\n")
        added = await machine.news(same.position, len(" line\nnext\n"))
        assert (added.data, added.continues) == (b" line\nnext\n", True)


@asynchronous
async def test_a_log_that_was_cut_or_replaced_or_is_another_one_is_read_anew(sshd: Sshd, tmp_path: Path) -> None:
    async with machine_of(sshd, tmp_path) as machine:
        machine.log.write_text("a\nb\nc\n")
        first = await machine.logs.read(machine.sighting, None)
        _write_at_once(machine.log, "d\n")
        cut = await machine.news(first.position)
        assert (cut.data, cut.continues, cut.position.file) == (b"d\n", False, first.position.file)
        _replace(machine.log, "other words of another file\n")
        replaced = await machine.news(cut.position)
        assert (replaced.data, replaced.continues) == (b"other words of another file\n", False)
        second = machine.log.parent.parent / "run 2" / "training.log"
        second.parent.mkdir()
        _replace(second, "second run\n")
        newest = await machine.news(replaced.position)
        assert (newest.data, newest.continues) == (b"second run\n", False)
        assert newest.position.file.endswith("run 2/training.log")


@asynchronous
async def test_a_burst_is_bounded_and_the_next_read_follows_its_end(sshd: Sshd, tmp_path: Path) -> None:
    async with machine_of(sshd, tmp_path) as machine:
        machine.log.write_bytes(b"x" * 500_000 + b"\n" + b"\r 10%| 1/9" * 50_000)
        first = await machine.logs.read(machine.sighting, None)
        assert len(first.data) <= 65536
        with machine.log.open("ab") as file:
            file.write(b"y" * 300_000)
        burst = await machine.news(first.position)
        assert (len(burst.data), burst.continues) == (65536, False)
        with machine.log.open("ab") as file:
            file.write(b"\nend\n")
        assert (await machine.news(burst.position, 5)).data == b"\nend\n"


@asynchronous
async def test_what_is_missing_is_said(sshd: Sshd, tmp_path: Path) -> None:
    async with machine_of(sshd, tmp_path) as machine:
        with pytest.raises(CommandFailed, match="no file matches"):
            await machine.logs.read(machine.sighting, None)
        with pytest.raises(Unreachable, match="no way to log in yet"):
            await machine.logs.read(replace(machine.sighting, accesses=()), None)
    nobody = SshLogs(key_path=tmp_path / "none", connect=connect)
    with pytest.raises(ConfigInvalid, match="there is no SSH key"):
        await nobody.read(machine.sighting, None)


@asynchronous
async def test_a_lost_connection_is_opened_again_and_a_new_address_is_followed(sshd: Sshd, tmp_path: Path) -> None:
    async with machine_of(sshd, tmp_path) as machine, tcp_proxy(sshd.port) as proxy:
        machine.log.write_text("one\n")
        first = await machine.logs.read(machine.sighting, None)
        sshd.kill_sessions()
        with machine.log.open("a") as file:
            file.write("two\n")
        added = await _after_a_failure(machine, first.position)
        assert (added.data, added.continues) == (b"two\n", True)
        machine.sighting = machine.at(proxy.port)
        with machine.log.open("a") as file:
            file.write("three\n")
        assert (await machine.news(added.position, 6)).data == b"three\n"
        assert proxy.connections == 1


@asynchronous
async def test_a_loop_that_was_killed_on_the_machine_is_started_again(sshd: Sshd, tmp_path: Path) -> None:
    async with machine_of(sshd, tmp_path) as machine:
        machine.log.write_text("one\n")
        first = await machine.logs.read(machine.sighting, None)
        for pid in _programs_with(str(tmp_path)):
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        with machine.log.open("a") as file:
            file.write("two\n")
        assert (await _after_a_failure(machine, first.position)).data == b"two\n"


@asynchronous
async def test_a_machine_whose_first_address_is_dead_is_read_through_the_other(sshd: Sshd, tmp_path: Path) -> None:
    async with machine_of(sshd, tmp_path) as machine:
        machine.log.write_text("one\n")
        dead = replace(machine.access, port=own_port())
        both = replace(machine.sighting, accesses=(dead, machine.access))
        assert (await machine.logs.read(both, None)).data == b"one\n"


@asynchronous
async def test_nothing_is_left_running_on_the_machine(sshd: Sshd, tmp_path: Path) -> None:
    async with machine_of(sshd, tmp_path) as machine:
        machine.log.write_text("one\n")
        await machine.logs.read(machine.sighting, None)
        assert _programs_with(str(tmp_path))
    await until(lambda: not _programs_with(str(tmp_path)), what="the end of the loop on the machine", seconds=30.0)


@asynchronous
async def test_a_machine_that_accepts_and_says_nothing_delays_nothing(sshd: Sshd, tmp_path: Path) -> None:
    """The dead machine's server takes connections and never answers; its login may take far longer than this test."""
    async with machine_of(sshd, tmp_path) as machine, tcp_proxy(sshd.port) as dead:
        dead.pause()
        machine.log.write_text("Step 7/10: Loss = 1.5\n")
        looks: list[MonitorLook] = []
        async with _monitored(machine, dead, looks) as source:
            await until(lambda: bool(looks) and _step_of(looks[-1], "7") == 7, what="the log of the other")
            calls = source.list_calls
            await until(lambda: source.list_calls >= calls + 3, what="more listings")
            assert _step_of(looks[-1], "8") is None


@asynccontextmanager
async def _monitored(machine: Machine, dead: TcpProxy, looks: list[MonitorLook]) -> AsyncIterator[ScriptedSource]:
    warnings = Warnings()
    source = ScriptedSource(seen=listed(machine.sighting, replace(machine.at(dead.port), id="8")))
    monitor = Monitor(
        listing=source,
        logs=machine.logs,
        fleet=Fleet(warn=warnings.add),
        warnings=warnings,
        publish=looks.append,
        every_seconds=0.5,
        list_every_seconds=0.5,
    )
    running = asyncio.create_task(monitor.run())
    try:
        yield source
    finally:
        running.cancel()
        async with asyncio.timeout(30.0):
            await asyncio.wait({running})
            await machine.logs.close()


async def _after_a_failure(machine: Machine, since: LogPosition) -> LogPiece:
    """The next piece; a read may find the old connection dead first."""
    while True:
        with suppress(Unreachable, CommandFailed):
            return await machine.news(since, len("two\n"))


def _programs_with(text: str) -> list[str]:
    """The processes of this computer with this text in their arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                found += [entry.name] if text.encode() in (entry / "cmdline").read_bytes() else []
    return found


def _write_at_once(file: Path, text: str) -> None:
    """Shorten a file in place, never to nothing: an empty file is a piece of its own."""
    with file.open("r+") as opened:
        opened.write(text)
        opened.truncate()


def _replace(file: Path, text: str) -> None:
    new = file.with_name("new")
    new.write_text(text)
    new.rename(file)


def _step_of(look: MonitorLook, name: str) -> int | None:
    return next((each.step for each in look.snapshot.instances if each.id == name), None)
