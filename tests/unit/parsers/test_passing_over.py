"""Lines that cannot carry anything are passed over, and the result is that of reading every line.

A user's pattern sees every line, so a reader with a pattern that never matches reads all of them.
"""

from __future__ import annotations

import re
from importlib import import_module
from itertools import pairwise
from pkgutil import iter_modules

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stationmaster.parsers
from stationmaster.parsers import LogReader
from stationmaster.parsers.carrying import may_carry
from stationmaster.parsers.patterns import UserPattern
from stationmaster.parsers.pieces import shown_texts
from tests.support.watching.training_logs import NAMES, log_bytes

_NEVER = UserPattern(pattern=r"(?P<step>\d)(?!.)(?=.)")
_LOG_LINES = [line for name in NAMES for line in re.split(rb"(?<=[\r\n])", log_bytes(name)) if line]
_BEGINNINGS = [
    b"Traceback (most recent call last):\n",
    b"***** train metrics *****\n",
    b"  epoch = 2.0\n",
    b"epoch  train_loss  time\n",
    b"***** Running Evaluation *****\n",
    b"Epoch 9: 100%\n",
    b"Epoch 3:\n",
    b"ERROR: the data loader failed\n",
    b"Exception in thread Thread-3:\n",
    b"Epoch 1/5\n",
    b"\r 10%|#  | 10/100 [00:10<01:30, 1.00it/s]",
    b" 12/100 [00:12<01:28, 1.00it/s]\n",
    b"RuntimeError: it broke\n",
]


def _every_pattern() -> list[re.Pattern[str]]:
    """Those by which lines are read: whatever one of them matches must not be passed over if it means anything."""
    modules = [
        import_module(module.name) for module in iter_modules(stationmaster.parsers.__path__, "stationmaster.parsers.")
    ]
    values = [value for module in modules for value in vars(module).values()]
    nested = [
        one for value in values if isinstance(value, tuple) for pair in value if isinstance(pair, tuple) for one in pair
    ]
    found = [one for one in (*values, *nested) if isinstance(one, re.Pattern) and isinstance(one.pattern, str)]
    assert len(found) > 60
    return found


def _as_lines(text: str) -> bytes:
    return text.encode("utf-8", "replace") + b"\n"


_quiet = st.text(alphabet="0123456789abxyz .,-_=()!?\t\u00a0\u2500\u0663é", max_size=12).map(_as_lines)
_blank = st.sampled_from(
    [b"\n", b"\r", b"  \n", b"\x00\x00", b"\x01\n", b"\x1b[0m\n", b"\x1b[A\n", "\u2003\n".encode(), b"^M\n"]
)
_logged = st.sampled_from(_LOG_LINES)
_beginning = st.sampled_from(_BEGINNINGS)
_matching = st.sampled_from(_every_pattern()).flatmap(lambda pattern: st.from_regex(pattern)).map(_as_lines)
_hidden = st.tuples(_logged, st.integers(0, 60), st.sampled_from([b"\x1b[0m", b"\x07", b"\x02", b"\x1b]0;a\x07"])).map(
    lambda hidden: hidden[0][: hidden[1]] + hidden[2] + hidden[0][hidden[1] :]
)
_texts = st.lists(
    st.one_of(_quiet, _quiet, _blank, _beginning, _logged, _matching, _hidden, st.binary(max_size=80)), max_size=12
).map(b"".join)


def _fed(reader: LogReader, data: bytes, cuts: list[int]) -> LogReader:
    edges = [0, *sorted(cut for cut in set(cuts) if 0 < cut < len(data)), len(data)]
    for start, end in pairwise(edges):
        reader.feed(data[start:end])
    return reader


@given(_texts, st.lists(st.integers(0, 400), max_size=5))
def test_what_is_passed_over_would_have_changed_nothing(data: bytes, cuts: list[int]) -> None:
    every_line = _fed(LogReader(patterns=[_NEVER]), data, cuts)
    assert _fed(LogReader(), data, []).summary() == every_line.summary()
    assert _fed(LogReader(), data, cuts).summary() == every_line.summary()


@given(st.one_of(_matching, _quiet, _hidden), st.sampled_from(_BEGINNINGS))
def test_a_line_that_is_passed_over_leaves_the_same_memory_as_reading_it(line: bytes, beginning: bytes) -> None:
    """Alone, and after a line that later ones may belong to."""
    for data in (line, beginning + line):
        read, every_line = (_fed(LogReader(patterns=each), data, []) for each in ([], [_NEVER]))
        assert read.state()["memory"] == every_line.state()["memory"]


@pytest.mark.parametrize("line", [b"y", b"17", b"...", b"hello there", b"=====", b"\x1b[31mred\x1b[0m", b"", b"  "])
def test_lines_without_a_word_of_a_trainer_carry_nothing(line: bytes) -> None:
    assert not may_carry(line)


@pytest.mark.parametrize(
    "line",
    [
        b"loss: 1",
        b"lr=1e-4",
        b"i 3/9",
        b"it 3 of 9",
        b"5/9 [==>]",
        b"Killed",
        b"Saved out/a.pt",
        b"lo\x1b[0mss: 1",
        b"lo\x02ss: 1",
        b"0 [0:0\xd9\xa0, ",  # a digit of another script
    ],
)
def test_lines_with_a_word_of_a_trainer_are_read(line: bytes) -> None:
    assert may_carry(line)


def test_a_line_printed_by_the_million_hides_nothing() -> None:
    reader = LogReader()
    reader.feed(b"y\n" * 40_000 + b"Step 5/9: loss=0.5\n" + b"1\n" * 40_000 + b"\x02\x03\x04binary\x05\n" * 9_000)
    reader.feed(b"saved checkpoint to out/a.safetensors\n" + b"\n" * 40_000)
    summary = reader.summary()
    assert (summary.step, summary.loss, summary.checkpoints) == (5, 0.5, ("out/a.safetensors",))


def test_binary_output_is_not_read_as_text() -> None:
    reader = LogReader()
    reader.feed(b"Step 5/9: loss=0.5\n\x02\x03\x04\x05Step 7/9: loss=0.1\x01\x02\n")
    assert reader.summary().step == 5
    assert shown_texts(b"\x01Step 6/9") == ["Step 6/9"]  # as a log of Docker has it
    reader.feed(b"\x01\x00\x00\x00\x00\x00\x00\x12Step 6/9: loss=0.4\n")
    assert reader.summary().step == 6
