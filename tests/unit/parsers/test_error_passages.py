"""The passages of a log that `logs --errors` prints: errors with a few lines around them, tracebacks whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.parsers.base import ErrorKind
from stationmaster.parsers.error_passages import ErrorPassages, PassageLine

LOG = b"""loading the model
epoch 1
steps:  10%|#  | 1/10\rsteps:  20%|## | 2/10
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    main()
    ^^^^^^
  File "train.py", line 9, in main
    raise error
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB
after 1
after 2
after 3
1
2
3
no errors so far
4
5
Killed
"""


def passages(*chunks: bytes) -> list[PassageLine]:
    reader = ErrorPassages()
    return [line for chunk in chunks for line in reader.feed(chunk)] + list(reader.end())


def test_a_traceback_is_whole_and_has_two_lines_on_both_sides() -> None:
    first = [line for line in passages(LOG) if line.passage == 1]
    assert [line.line for line in first] == list(range(2, 13))
    assert first[1].text == "steps:  20%|## | 2/10"
    assert [line.line for line in first if line.is_error] == list(range(4, 11))
    assert [line.fault.kind for line in first if line.fault] == [ErrorKind.OOM]


def test_errors_far_apart_are_passages_of_their_own() -> None:
    last = [line for line in passages(LOG) if line.passage == 2]
    assert [(line.line, line.text, line.is_error) for line in last] == [
        (18, "4", False), (19, "5", False), (20, "Killed", True),
    ]  # fmt: skip


def test_errors_close_together_are_one_passage_without_gaps_or_repetition() -> None:
    found = passages(b"Killed\na\nb\nc\nd\nKilled\ne\n")
    assert [(line.passage, line.line) for line in found] == [(1, number) for number in range(1, 8)]


def test_a_log_without_errors_has_no_passages() -> None:
    assert passages(b"mean squared error: 0.2\n0 errors\nsteps: 1/2\r", b"\x00\x01\x02\x03\x04binary error\n") == []


def test_an_error_that_was_drawn_over_by_a_bar_is_found() -> None:
    (line,) = passages(b"RuntimeError: lost\rsteps:  20%|## | 2/10\n")
    assert line.text == "RuntimeError: lost"


def test_an_error_without_a_line_end_is_found_at_the_end() -> None:
    assert [line.text for line in passages(b"ok\nKil", b"led")] == ["ok", "Killed"]


@pytest.mark.parametrize("size", [1, 2, 7, 64])
def test_how_the_log_is_cut_does_not_matter(size: int) -> None:
    assert passages(*(LOG[place : place + size] for place in range(0, len(LOG), size))) == passages(LOG)


@given(st.lists(st.sampled_from([b"Killed", b"fine", b"", b'  File "x", line 1', b"ValueError: no", b"x\ry"])))
def test_lines_come_in_order_and_once(lines: list[bytes]) -> None:
    numbers = [line.line for line in passages(b"\n".join(lines) + b"\n")]
    assert numbers == sorted(set(numbers))
