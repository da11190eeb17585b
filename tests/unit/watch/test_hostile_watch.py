"""Whatever a log says and however its clock runs, the whole watch over it neither fails nor forgets how to go on."""

from __future__ import annotations

import itertools
import json
import math
import random
from dataclasses import fields

from stationmaster.parsers import LogReader
from stationmaster.watch.log_moment import log_moment
from stationmaster.watch.policy import StallPolicy
from stationmaster.watch.signs import SignsOfLife
from stationmaster.watch.stillness import MachineMoment
from stationmaster.watch.watcher import StallWatch
from tests.support.watching.training_logs import NAMES, log_bytes

_RUNS = 150
_KINDS = {"stall_flagged", "stall_cleared", "terminate"}


def test_damaged_logs_at_unruly_times_are_watched_without_a_failure() -> None:
    chance = random.Random(20260611)
    logs = [log_bytes(name) for name in NAMES]
    for _ in range(_RUNS):
        told = _watched(_shuffled(chance.choice(logs), chance), chance)
        assert set(told) <= _KINDS
        assert all(one != two for one, two in itertools.pairwise(told)), f"told twice in a row: {told}"


def _watched(pieces: list[bytes], chance: random.Random) -> list[str]:
    """The events of a watch that is put down and taken up again now and then, as between two workers."""
    reader, watch, signs = LogReader(), StallWatch(StallPolicy(min_window=30.0, grace=20.0)), SignsOfLife()
    at, told = 1_000_000.0, []
    for piece in pieces:
        at += chance.choice([0.0, 0.1, 1.0, 60.0, 900.0, -5.0, -1e6, 1e7])
        watch.observe(log_moment(reader.feed(piece, at=at), at=at, moved=signs.feed(piece.decode("utf-8", "replace"))))
        for _ in range(chance.randint(0, 3)):
            watch.observe_machine(_moment(at, chance))
        look = watch.look(at)
        told += [look.event.kind] if look.event else []
        assert look.analysis.eta_seconds is None or not math.isnan(look.analysis.eta_seconds)
        if chance.random() < 0.3:
            reader = LogReader.restore(json.loads(json.dumps(reader.state())))
            watch = StallWatch.restore(json.loads(json.dumps(watch.state())), watch.policy)
            signs = SignsOfLife.restore(json.loads(json.dumps(signs.state())))
    return told


def _moment(at: float, chance: random.Random) -> MachineMoment:
    """A sample with gaps, at a time that may be wrong; most of them show a machine that rests."""
    number = [None, 0.0, 0.0, 0.0, 1e-3, 50.0, 1e300, -1.0]
    names = [item.name for item in fields(MachineMoment) if item.name.endswith(("percent", "part", "gb", "second"))]
    return MachineMoment(
        at=at + chance.choice([0.0, -1.0, 5.0, 1e6]),
        **{name: chance.choice(number) for name in names},
        gpus=chance.choice([None, 0, 1]),
        processes=(7, 8)[: chance.randint(0, 2)],
        states=("asleep", chance.choice([None, "asleep", "disk", "what"]))[: chance.randint(0, 2)],
    )


def _shuffled(data: bytes, chance: random.Random) -> list[bytes]:
    """The log in pieces, some of them lost, repeated, swapped or made of noise."""
    size = max(1, len(data) // 40)
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    for _ in range(chance.randint(0, 8)):
        where = chance.randrange(len(pieces))
        match chance.randrange(4):
            case 0:
                pieces[where] = b""
            case 1:
                pieces.insert(where, pieces[chance.randrange(len(pieces))])
            case 2:
                other = chance.randrange(len(pieces))
                pieces[where], pieces[other] = pieces[other], pieces[where]
            case _:
                pieces[where] = chance.randbytes(chance.randint(1, 300))
    return pieces
