"""`stationmaster logs --errors`: the passages of a job's log that report errors, as text or as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from stationmaster.model import LogChunk
from stationmaster.parsers.error_passages import ErrorPassages, PassageLine


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLine:
    """A line of a passage, and of which stream it is."""

    attempt: int
    stream: str
    found: PassageLine

    @property
    def place(self) -> tuple[int, str, int]:
        """The passage that it belongs to."""
        return self.attempt, self.stream, self.found.passage

    def text(self) -> str:
        """As grep prints a line that matches, or one around it: `1/train.1:812: CUDA out of memory`."""
        sign = ":" if self.found.is_error else "-"
        return f"{self.attempt}/{self.stream}{sign}{self.found.line}{sign} {self.found.text}".rstrip()

    def json(self) -> dict[str, Any]:
        """One object; names are stable."""
        fault = self.found.fault
        return {
            "attempt": self.attempt,
            "stream": self.stream,
            "passage": self.found.passage,
            "line": self.found.line,
            "text": self.found.text,
            "is_error": self.found.is_error,
            "kind": None if fault is None else fault.kind.value,
            "fatal": None if fault is None else fault.fatal,
        }


def error_lines(pages: Iterable[Sequence[tuple[int, LogChunk]]]) -> Iterator[FoundLine]:
    """The lines of all passages, as soon as they are known. Streams are read apart, as they may be interleaved."""
    streams: dict[tuple[int, str], ErrorPassages] = {}
    for page in pages:
        for _, chunk in page:
            passages = streams.setdefault((chunk.attempt, chunk.stream), ErrorPassages())
            for found in passages.feed(chunk.data):
                yield FoundLine(attempt=chunk.attempt, stream=chunk.stream, found=found)
    for (attempt, stream), passages in streams.items():
        for found in passages.end():
            yield FoundLine(attempt=attempt, stream=stream, found=found)
