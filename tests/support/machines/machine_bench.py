"""The same small programs on every kind of machine, so that one contract can be held against all of them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from stationmaster.remote.base import Completed, Remote
from stationmaster.remote.fake import Call, FakeRemote
from stationmaster.remote.local import LocalRemote
from stationmaster.remote.ssh import SshRemote
from stationmaster.remote.ssh_connection import SshTarget

_PROGRAMS = {
    "arguments": "printf '%s\\0' \"$@\"",
    "copy": "cat",
    "fail": 'echo out; echo err >&2; exit "$1"',
    "environment": 'printf "%s" "$(printenv "$1")"',
    "big": "head -c \"$1\" /dev/zero | tr '\\0' x",
    "slow": "exec sleep 60",
    "killed": "kill -9 $$",
    "trickle": "printf 'one\\r'; sleep 0.2; printf 'two\\r'; echo oops >&2; exit 3",
    "mute": "exec >&-; exec sleep 60",
    "endless": "echo $$; exec cat",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One kind of machine: how to reach it, where its programs and its empty folder are."""

    kind: str
    make: Callable[[], Remote]
    folder: str
    programs: str
    is_running: Callable[[int], bool]

    def program(self, name: str, *arguments: str) -> list[str]:
        return [f"{self.programs}/{name}", *arguments]

    @asynccontextmanager
    async def remote(self) -> AsyncIterator[Remote]:
        remote = self.make()
        try:
            yield remote
        finally:
            await remote.close()


def local_bench(folder: Path) -> Bench:
    programs, work = _real_folders(folder)
    environment = {"PATH": os.environ["PATH"], "GIVEN": "to everything"}
    return Bench(
        kind="local",
        make=lambda: LocalRemote(root=work, environment=environment),
        folder=str(work),
        programs=str(programs),
        is_running=_is_running,
    )


def ssh_bench(folder: Path, settings: SshTarget) -> Bench:
    programs, work = _real_folders(folder)
    return Bench(
        kind="ssh",
        make=lambda: SshRemote(settings),
        folder=str(work),
        programs=str(programs),
        is_running=_is_running,
    )


def fake_bench() -> Bench:
    remote = FakeRemote()
    running: set[int] = set()
    _install_fakes(remote, running)
    return Bench(
        kind="fake", make=lambda: remote, folder="/work", programs="/programs", is_running=lambda pid: pid in running
    )


def _real_folders(folder: Path) -> tuple[Path, Path]:
    programs, work = folder / "programs", folder / "work"
    programs.mkdir()
    work.mkdir()
    for name, text in _PROGRAMS.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    return programs, work


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _install_fakes(remote: FakeRemote, running: set[int]) -> None:
    async def slow(call: Call) -> Completed:
        await asyncio.sleep(60)
        return Completed(exit_status=0)

    async def trickle(call: Call) -> AsyncIterator[bytes]:
        yield b"one\r"
        await asyncio.sleep(0)
        yield b"two\r"

    async def mute(call: Call) -> AsyncIterator[bytes]:
        await asyncio.sleep(60)
        yield b""

    async def endless(call: Call) -> AsyncIterator[bytes]:
        running.add(4242)
        try:
            yield b"4242\n"
            await asyncio.sleep(600)
        finally:
            running.discard(4242)

    answers: dict[str, Callable[[Call], Completed]] = {
        "arguments": lambda call: _said(b"".join(word.encode() + b"\0" for word in call.argv[1:])),
        "copy": lambda call: _said(call.input or b""),
        "fail": lambda call: Completed(exit_status=int(call.argv[1]), stdout=b"out\n", stderr=b"err\n"),
        "environment": lambda call: _said(call.env.get(call.argv[1], "").encode()),
        "big": lambda call: _said(b"x" * int(call.argv[1])),
        "killed": lambda call: Completed(exit_status=137),
    }
    for name, answer in answers.items():
        remote.on(f"/programs/{name}", answer)
    remote.on("/programs/slow", slow)
    remote.on_stream("/programs/trickle", trickle)
    remote.on_stream("/programs/mute", mute)
    remote.on_stream("/programs/endless", endless)


def _said(stdout: bytes) -> Completed:
    return Completed(exit_status=0, stdout=stdout)
