"""The way to a machine, written down: everything that home sends there, as a curious machine would keep it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stationmaster.model import Access
from stationmaster.model.intake_limits import ANSWER_BYTES
from stationmaster.remote.base import Completed, Conversation, Remote


class Recorded:
    """Any Remote; `kept` is every word, environment, standard input and file that went to the machine."""

    def __init__(self, inner: Any, kept: list[bytes]) -> None:
        self._inner = inner
        self._kept = kept

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float,
        most_bytes: int = ANSWER_BYTES,
    ) -> Completed:
        self._kept += [*(word.encode() for word in (*argv, *(env or {}), *(env or {}).values())), input or b""]
        done: Completed = await self._inner.run(argv, input=input, env=env, timeout=timeout, most_bytes=most_bytes)
        return done

    def stream(self, argv: Sequence[str], **more: Any) -> Any:
        self._kept += [word.encode() for word in argv]
        return self._inner.stream(argv, **more)

    async def converse(self, argv: Sequence[str], *, timeout: float) -> Conversation:
        self._kept += [word.encode() for word in argv]
        return RecordedConversation(await self._inner.converse(argv, timeout=timeout), self._kept)

    async def push(self, local: Path, remote: str, **more: Any) -> None:
        self._kept += [remote.encode(), local.read_bytes()]
        await self._inner.push(local, remote, **more)

    async def push_spans(self, local: Path, remote: str, spans: Any, **more: Any) -> None:
        self._kept += [remote.encode(), local.read_bytes()]
        await self._inner.push_spans(local, remote, spans, **more)


class RecordedConversation:
    """A command that is asked repeatedly, with everything that it is sent."""

    def __init__(self, inner: Conversation, kept: list[bytes]) -> None:
        self._inner = inner
        self._kept = kept

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def send(self, data: bytes) -> None:
        self._kept.append(data)
        await self._inner.send(data)


def recorded(connect: Callable[[Access], Remote], kept: list[bytes]) -> Callable[[Access], Remote]:
    """A `connect` that records each access, and everything sent to the machines, in `kept`."""

    def connect_recorded(access: Access) -> Any:
        kept.append(repr(access).encode())
        return Recorded(connect(access), kept)

    return connect_recorded
