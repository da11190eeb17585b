"""Keeps one trackside running on a machine for several verbs; whatever goes wrong, each verb can run on its own."""

from __future__ import annotations

import asyncio
import json
import math
import os
import time
from collections.abc import Sequence

from stationmaster.errors import CommandFailed
from stationmaster.model.intake_limits import ANSWER_BYTES, STDERR_BYTES
from stationmaster.remote.base import (
    Completed,
    Conversation,
    Remote,
    SupportsConversations,
    command_name,
    no_answer,
    too_long,
)

_VERB_AT = 4  # python trackside.pyz --root ROOT VERB …
_IDLE_SECONDS = 120.0  # after which it ends by itself on the machine
_FORGET_SECONDS = 100.0  # after which it is not asked again: it might end at that moment
_PAUSE_SECONDS = 600.0  # after one that could not be started, or answered nonsense
_BANNER_BYTES = 1 << 16  # what a login may print first
_HEAD_BYTES = 1 << 10
_CHUNK_BYTES = 1 << 16
_TURN_SECONDS = 1.0  # to wait for another verb
_LEAST_SECONDS = 1.0  # for a verb that runs again on its own


class _Broken(Exception):
    """It ended, or what it printed is no answer."""


class KeptTrackside:
    """Runs verbs as `remote.run` does, with the same limits, and in one process where the machine can.

    Every verb may be repeated, so one whose answer did not come because the process ended runs again.
    """

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        # Asked once: with a protocol, isinstance compares the methods each time.
        self._talking = remote if isinstance(remote, SupportsConversations) else None
        self._kept: _Session | None = None
        self._turn = asyncio.Lock()
        self._not_before = 0.0
        self.visited_at = -math.inf  # by our monotonic clock: when the machine last recorded a visit

    @property
    def is_open(self) -> bool:
        """Whether one is running, as far as is known here."""
        return self._kept is not None and self._kept.conversation.is_open

    async def run(
        self, argv: Sequence[str], *, input: bytes | None = None, timeout: float, most_bytes: int = ANSWER_BYTES
    ) -> Completed:
        """Run one verb to its end; beside another one that takes long, in a process of its own."""
        began = time.monotonic()
        if self._talking is not None and began >= self._not_before and await self._take_turn():
            try:
                return await self._ask(self._talking, argv, input or b"", timeout, most_bytes)
            except _Broken:
                self._not_before = time.monotonic() + _PAUSE_SECONDS
            finally:
                self._turn.release()
        left = max(_LEAST_SECONDS, timeout - (time.monotonic() - began))
        return await self._remote.run(argv, input=input, timeout=left, most_bytes=most_bytes)

    async def close(self) -> None:
        """End it. Nothing else that runs on the machine stops."""
        kept, self._kept = self._kept, None
        if kept is not None:
            await kept.conversation.close()

    async def _take_turn(self) -> bool:
        try:
            async with asyncio.timeout(_TURN_SECONDS):
                return await self._turn.acquire()
        except TimeoutError:
            return False

    async def _ask(
        self, remote: SupportsConversations, argv: Sequence[str], given: bytes, timeout: float, most_bytes: int
    ) -> Completed:
        try:
            async with asyncio.timeout(timeout):
                if self._kept is not None and self._kept.may_answer(argv):
                    try:
                        return await self._kept.ask(argv, given, most_bytes)
                    except _Broken:
                        pass  # it was killed or replaced: the next one is asked
                await self.close()
                self._kept = await _start(remote, argv, timeout)
                await self._kept.skip_banner()
                return await self._kept.ask(argv, given, most_bytes)
        except TimeoutError:
            kept, self._kept = self._kept, None
            if kept is not None:
                self._not_before = time.monotonic() + _PAUSE_SECONDS  # perhaps only this way is silent
                await kept.conversation.give_up()
            raise no_answer(command_name(argv), timeout) from None
        except BaseException:
            await self.close()  # the rest of its answer may still come
            raise


class _Session:
    """One trackside that is running."""

    def __init__(self, conversation: Conversation, command: Sequence[str], *, token: bytes) -> None:
        self.conversation = conversation
        self._command = list(command)
        self._token = token
        self._read = b""
        self._used_at = time.monotonic()

    def may_answer(self, argv: Sequence[str]) -> bool:
        is_fresh = time.monotonic() - self._used_at < _FORGET_SECONDS
        return is_fresh and self.conversation.is_open and list(argv[:_VERB_AT]) == self._command

    async def skip_banner(self) -> None:
        """Read past what a login prints, up to the words that we gave it."""
        read_bytes = 0
        while (line := await self._line(_BANNER_BYTES)).rstrip() != self._token:
            read_bytes += len(line) + 1
            if read_bytes > _BANNER_BYTES:
                raise _Broken

    async def ask(self, argv: Sequence[str], given: bytes, most_bytes: int) -> Completed:
        request = {"argv": list(argv[_VERB_AT:]), "input": len(given), "most": most_bytes}
        await self._send(json.dumps(request).encode() + b"\n" + given)
        head = _head(await self._line(_HEAD_BYTES))
        if head["stdout"] > most_bytes:
            raise too_long(argv, most_bytes)
        if not 0 <= head["stderr"] <= STDERR_BYTES or head["stdout"] < 0:
            raise _Broken
        stdout = await self._exactly(head["stdout"])
        stderr = await self._exactly(head["stderr"])
        self._used_at = time.monotonic()
        return Completed(exit_status=head["status"], stdout=stdout, stderr=stderr)

    async def _line(self, most_bytes: int) -> bytes:
        while b"\n" not in self._read:
            if len(self._read) > most_bytes:
                raise _Broken
            await self._more()
        line, self._read = self._read.split(b"\n", 1)
        return line

    async def _exactly(self, size: int) -> bytes:
        pieces, missing = [self._read[:size]], size - len(self._read)
        self._read = self._read[size:]
        while missing > 0:
            await self._more(min(missing, _CHUNK_BYTES))
            pieces.append(self._read)
            missing -= len(self._read)
            self._read = b""
        return b"".join(pieces)

    async def _more(self, most_bytes: int = _CHUNK_BYTES) -> None:
        chunk = await self.conversation.read(most_bytes)
        if not chunk:
            raise _Broken
        self._read += chunk

    async def _send(self, data: bytes) -> None:
        try:
            await self.conversation.send(data)
        except OSError as problem:
            raise _Broken from problem


async def _start(remote: SupportsConversations, argv: Sequence[str], timeout: float) -> _Session:
    token = f"trackside {os.urandom(8).hex()}"
    command = list(argv[:_VERB_AT])
    serving = [*command, "serve", "--token", token, "--idle", f"{_IDLE_SECONDS:g}"]
    try:
        conversation = await remote.converse(serving, timeout=timeout)
    except CommandFailed as problem:
        raise _Broken from problem
    return _Session(conversation, command, token=token.encode())


def _head(line: bytes) -> dict[str, int]:
    try:
        head = json.loads(line)
        return {name: int(head[name]) for name in ("status", "stdout", "stderr")}
    except (ValueError, TypeError, LookupError, RecursionError, OverflowError) as problem:
        raise _Broken from problem
