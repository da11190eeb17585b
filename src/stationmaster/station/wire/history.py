"""Pieces of log, lines found in it, and readings; pages that continue where the last one ended."""

from __future__ import annotations

import base64
import codecs
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

from pydantic import Field

from stationmaster.model import LogChunk, StepReading
from stationmaster.station.history import LogMatch
from stationmaster.station.wire.document import Document, Instant, Number, Page

Item = TypeVar("Item")


class HistoryPage(Page[Item], Generic[Item]):
    """One page of what happened, oldest first."""

    cursor: str = Field(examples=["17"])
    """Pass this as `after` later to get what is new by then, whether or not there was a next page."""


class LogDocument(Document):
    """A piece of a job's log."""

    seq: int
    """Its number; later pieces have higher numbers."""
    attempt: int
    """The attempt that printed it."""
    stream: str = Field(examples=["train.1"])
    """Step and try."""
    start: int
    """Offset of its first byte in the file on the machine."""
    end: int
    """Offset behind its last byte."""
    text: str
    """A character that is split over two pieces is in the later one, so that the texts of an answer can be joined."""
    data: str | None = None
    """The bytes, as base64; only where they differ from those of `text`."""

    def value(self) -> tuple[int, LogChunk]:
        data = self.text.encode() if self.data is None else base64.b64decode(self.data)
        return self.seq, LogChunk(attempt=self.attempt, stream=self.stream, start=self.start, end=self.end, data=data)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPiece:
    document: LogDocument
    is_whole: bool  # whether it ends at the end of a character


class LogReader:
    """Turns pieces of log into documents, in their order."""

    def __init__(self) -> None:
        self._decoders: dict[tuple[int, str], codecs.IncrementalDecoder] = {}

    def read(self, seq: int, chunk: LogChunk) -> ReadPiece:
        decoder = self._decoders.setdefault(
            (chunk.attempt, chunk.stream), codecs.getincrementaldecoder("utf-8")("replace")
        )
        text = decoder.decode(chunk.data)
        document = LogDocument(
            seq=seq,
            attempt=chunk.attempt,
            stream=chunk.stream,
            start=chunk.start,
            end=chunk.end,
            text=text,
            data=None if text.encode() == chunk.data else base64.b64encode(chunk.data).decode(),
        )
        return ReadPiece(document=document, is_whole=decoder.getstate()[0] == b"")


def read_page(pieces: Iterable[tuple[int, LogChunk]]) -> list[LogDocument]:
    """Documents of one page. It ends with a whole character if it can: the next page cannot know the first half."""
    reader = LogReader()
    read = [reader.read(seq, chunk) for seq, chunk in pieces]
    whole = next((place for place in range(len(read), 0, -1) if read[place - 1].is_whole), len(read))
    return [piece.document for piece in read[:whole]]


class LogMatchDocument(Document):
    """A line of a log that contains the text that was searched for."""

    number: int
    """Among all matches, from 1."""
    seq: int
    """The piece of log in which the line ends."""
    attempt: int
    """The attempt that printed it."""
    stream: str = Field(examples=["train.1"])
    """Step and try."""
    line: int
    """Its number in the stored log of that stream, from 1."""
    text: str
    """Without its end; a very long line is cut."""

    @classmethod
    def of(cls, match: LogMatch) -> Self:
        return cls(
            number=match.number,
            seq=match.seq,
            attempt=match.attempt,
            stream=match.stream,
            line=match.line,
            text=match.text,
        )

    def value(self) -> LogMatch:
        return LogMatch(
            number=self.number,
            seq=self.seq,
            attempt=self.attempt,
            stream=self.stream,
            line=self.line,
            text=self.text,
        )


class ReadingDocument(Document):
    """Training values at a step, as read from the log."""

    seq: int
    """Its number; later readings have higher numbers."""
    attempt: int
    """The attempt that printed it."""
    at: Instant
    """When it was read."""
    step: int
    """The training step."""
    loss: Number | None = None
    """Loss at that step."""
    learning_rate: Number | None = None
    """Learning rate at that step."""
    steps_per_second: Number | None = None
    """Speed at that step."""

    @classmethod
    def of(cls, seq: int, reading: StepReading) -> Self:
        return cls(
            seq=seq,
            attempt=reading.attempt,
            at=reading.at,
            step=reading.step,
            loss=reading.loss,
            learning_rate=reading.learning_rate,
            steps_per_second=reading.steps_per_second,
        )

    def value(self) -> tuple[int, StepReading]:
        return self.seq, StepReading(
            attempt=self.attempt,
            at=self.at,
            step=self.step,
            loss=self.loss,
            learning_rate=self.learning_rate,
            steps_per_second=self.steps_per_second,
        )


class LossTrendDocument(Document):
    """The loss of a job's current attempt in a few dozen values, for a small picture."""

    loss: tuple[Number, ...] = Field(examples=[[0.31, 0.12, 0.09]])
    """In the order of the steps: the lowest and the highest of each part of the run."""
