"""Patterns of the user's own."""

from __future__ import annotations

import json

import pytest

from stationmaster.errors import ConfigInvalid
from stationmaster.parsers import ErrorKind, LogReader, Phase, UserPattern

_PROGRESS = UserPattern(
    pattern=r"tick (?P<step>\d+) of (?P<total_steps>\d+) cost (?P<loss>\S+) pace (?P<seconds_per_step>\S+)"
)


def test_a_pattern_reads_what_no_family_knows() -> None:
    reader = LogReader(patterns=[_PROGRESS])
    reader.feed(b"tick 40 of 200 cost 0.25 pace 0.5\n")
    summary = reader.summary()
    assert (summary.step, summary.total_steps, summary.loss, summary.steps_per_second) == (40, 200, 0.25, 2.0)
    assert summary.phase == Phase.TRAINING


def test_a_pattern_may_tell_a_phase_a_checkpoint_or_an_error() -> None:
    patterns = [
        UserPattern(pattern=r"^zzz$", phase=Phase.SAMPLING),
        UserPattern(pattern=r"kept as (?P<checkpoint>\S+)"),
        UserPattern(pattern=r"PANIC (?P<error>.+)"),
    ]
    reader = LogReader(patterns=patterns)
    assert [reading.phase for reading in reader.feed(b"zzz\n")] == [Phase.SAMPLING]
    assert [reading.checkpoint for reading in reader.feed(b"kept as a.bin\n")] == ["a.bin"]
    (reading,) = reader.feed(b"PANIC the flux is gone\n")
    assert reading.error is not None
    assert (reading.error.kind, reading.error.message, reading.error.fatal) == (
        ErrorKind.OTHER,
        "the flux is gone",
        True,
    )


def test_patterns_survive_a_restart() -> None:
    reader = LogReader(patterns=[_PROGRESS, UserPattern(pattern="^zzz$", phase=Phase.SAVING)])
    moved = LogReader.restore(json.loads(json.dumps(reader.state())))
    moved.feed(b"tick 1 of 2 cost 3 pace 4\nzzz\n")
    assert (moved.summary().step, moved.summary().phase) == (1, Phase.SAVING)


@pytest.mark.parametrize("pattern", ["(", r"(?P<speed>\d+)", "nothing"])
def test_a_pattern_that_cannot_work_is_refused_with_a_reason(pattern: str) -> None:
    with pytest.raises(ConfigInvalid, match="the log pattern"):
        UserPattern(pattern=pattern)
