"""However the bytes are cut, and wherever the reader is put away and taken up again, the result is the same."""

from __future__ import annotations

import json
import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from stationmaster.parsers import LogReader, Reading
from tests.support.watching.training_logs import NAMES, log_bytes

_ALL_LOGS = [log_bytes(name) for name in NAMES]


def _pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut for cut in set(cuts) if 0 < cut < len(data)), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


def _events(readings: list[Reading]) -> list[object]:
    """What may never be thinned out."""
    return [told for reading in readings for told in (reading.error, reading.checkpoint) if told is not None]


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """One to three of our logs behind each other, as when a run is started again into the same file."""
    return b"".join(draw(st.lists(st.sampled_from(_ALL_LOGS), min_size=1, max_size=3)))


_NAMES = ["steps: ", "", "Epoch 1: ", "Generating Images: ", "Epoch 2: "]
_ENDINGS = ["]", ", loss={}]", ", lr: 1e-4 loss: {}]", "", ", loss={}] "]
_OTHER_OUTPUT = [
    "\nsaving checkpoint: out/a.safetensors\n",
    "\n{'loss': 0.1}\n",
    "\nRuntimeError: it broke\n",
    "\nEpoch 3/9\n",
    "\x00\x00",
    "\x1b[A",
    "\n",
]


@st.composite
def bars(draw: st.DrawFn) -> bytes:
    """Runs of redraws of one bar after another, with other output in between: what thinning is for."""
    parts = []
    for _ in range(draw(st.integers(1, 5))):
        total = draw(st.integers(2, 60))
        name, ending = draw(st.sampled_from(_NAMES)), draw(st.sampled_from(_ENDINGS))
        for _ in range(draw(st.integers(1, 12))):
            step, loss = draw(st.integers(0, total)), draw(st.sampled_from(["0.5", "0.25", "0.125", "1e-3", "nan"]))
            drawn = f"\r{name}{step * 100 // total:3d}%|██▌  | {step}/{total} [00:10<00:20,  1.00it/s"
            parts.append(drawn + ending.format(loss))
        parts.append(draw(st.sampled_from(_OTHER_OUTPUT)))
    return "".join(parts).encode()


@given(st.one_of(logs(), bars()), st.lists(st.integers(0, 6000), max_size=12))
def test_any_split_gives_the_same_summary_errors_and_checkpoints(data: bytes, cuts: list[int]) -> None:
    whole, parts = LogReader(), LogReader()
    at_once = whole.feed(data)
    bit_by_bit = [reading for piece in _pieces(data, cuts) for reading in parts.feed(piece)]
    assert parts.summary() == whole.summary()
    assert _events(bit_by_bit) == _events(at_once)


@given(st.one_of(logs(), bars()), st.lists(st.integers(0, 6000), max_size=6))
def test_a_reader_put_away_as_json_goes_on_exactly_where_it_was(data: bytes, cuts: list[int]) -> None:
    steady = LogReader(total_steps=1000)
    moved = LogReader(total_steps=1000)
    for piece in _pieces(data, cuts):
        expected = steady.feed(piece, at=5.0)
        moved = LogReader.restore(json.loads(json.dumps(moved.state())))
        assert moved.feed(piece, at=5.0) == expected
        assert moved.summary() == steady.summary()


@given(st.one_of(logs(), bars()))
def test_a_log_fed_byte_by_byte_ends_the_same(data: bytes) -> None:
    whole, single = LogReader(), LogReader()
    whole.feed(data[:1500])
    for position in range(len(data[:1500])):
        single.feed(data[position : position + 1])
    assert single.summary() == whole.summary()


@given(st.one_of(logs(), bars()), st.lists(st.integers(0, 6000), max_size=12))
def test_thinned_readings_are_among_those_of_a_finer_split(data: bytes, cuts: list[int]) -> None:
    coarse, fine = LogReader(), LogReader()
    told = {reading.step for piece in _pieces(data, cuts) for reading in coarse.feed(piece)}
    every = {reading.step for piece in re.split(rb"(?<=[\]\r\n])", data) for reading in fine.feed(piece)}
    assert told <= every
