"""The end of a log that is read again and again: only what is new is parsed, and nothing is read wrongly for that."""

from __future__ import annotations

import pytest

from stationmaster.control.monitoring.log_tail import LogTail
from stationmaster.parsers.base import Reading
from stationmaster.parsers.reader import LogReader

_LOG = b"".join(
    b"Epoch %d/3\n" % (step // 40 + 1) + b"Step %d/120: Loss = %.3f\n" % (step, 3 - step / 60) for step in range(1, 120)
)


@pytest.mark.parametrize("added", [1, 7, 60, 350])
def test_ends_that_overlap_are_read_as_the_whole_log_is(added: int) -> None:
    log, whole = LogTail(), LogReader()
    for length in range(0, len(_LOG), added):
        seen = log.read(_LOG[max(0, length - 400) : length])
        whole.feed(_LOG[max(0, length - added) : length])
        expected = whole.summary()
        assert (seen.step, seen.epoch, seen.loss) == (expected.step, expected.epoch, expected.loss), length


def test_only_what_is_new_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    fed = bytearray()
    feed = LogReader.feed

    def counted(reader: LogReader, data: bytes) -> list[Reading]:
        fed.extend(data)
        return feed(reader, data)

    monkeypatch.setattr(LogReader, "feed", counted)
    log = LogTail()
    for length in range(300, len(_LOG), 30):
        log.read(_LOG[length - 300 : length])
        log.read(_LOG[length - 300 : length])
    assert bytes(fed) == _LOG[: len(fed)]
    assert len(fed) > len(_LOG) - 30


def test_another_log_or_a_gap_begins_anew_with_what_is_there() -> None:
    log = LogTail()
    assert log.read(b"Epoch 2/3\nStep 90/120: Loss = 1.500\n").step == 90
    assert log.read(b"Step 5/40: Loss = 0.250\n").step == 5
    assert log.lines == ("Step 5/40: Loss = 0.250",)


def test_lines_are_what_a_terminal_shows_of_them() -> None:
    log = LogTail()
    log.read(b"\n".join(b"line %d" % number for number in range(12)) + b"\n\n 10%|#  | 1/9\r 20%|## | 2/9\r\nended")
    assert log.lines == (*(f"line {number}" for number in range(4, 12)), " 20%|## | 2/9", "ended")
