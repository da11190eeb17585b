"""Whatever stands in a log, reading it neither fails nor takes for ever."""

from __future__ import annotations

import random
import re
import time
from importlib import import_module
from pkgutil import iter_modules
from re import _constants as codes
from re import _parser as sre
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stationmaster.parsers
from stationmaster.parsers import LogReader
from stationmaster.parsers.pieces import PIECE_LIMIT_BYTES
from tests.support.watching.training_logs import NAMES, log_bytes

_MUTATIONS = 400
_SCRAPS = [
    b"\r",
    b"\n",
    b"\x00" * 9,
    b"\x1b[",
    b"\x1b[A",
    b"\xe2\x96",
    b"|",
    b"[",
    b"]",
    b"%",
    b"nan",
    b"999999999999999999999",
    b"{'",
    b"\x08\x08",
]


@given(st.lists(st.binary(max_size=400), max_size=6))
def test_random_bytes_never_raise(chunks: list[bytes]) -> None:
    reader = LogReader()
    for chunk in chunks:
        reader.feed(chunk)
    reader.summary()
    reader.state()


@given(st.text(alphabet="0123456789/[]%|:<,. =-{}'\"\r\nlosepchtrainErrorTb\\()", max_size=300))
def test_texts_made_of_the_characters_of_bars_never_raise(text: str) -> None:
    reader = LogReader()
    reader.feed(text.encode())
    reader.summary()


def test_damaged_logs_never_raise_and_read_the_same_however_they_are_cut() -> None:
    chance = random.Random(20240607)
    logs = [log_bytes(name) for name in NAMES]
    for _ in range(_MUTATIONS):
        data = _damaged(chance.choice(logs), chance)
        cut = chance.randrange(len(data) + 1)
        whole, halves = LogReader(), LogReader()
        whole.feed(data)
        halves.feed(data[:cut])
        halves.feed(data[cut:])
        assert halves.summary() == whole.summary()


def _damaged(data: bytes, chance: random.Random) -> bytes:
    broken = bytearray(data)
    for _ in range(chance.randint(1, 6)):
        where = chance.randrange(len(broken) + 1)
        match chance.randrange(4):
            case 0:
                del broken[where : where + chance.randint(1, 40)]
            case 1:
                broken[where:where] = chance.choice(_SCRAPS)
            case 2:
                broken[where : where + 1] = bytes([chance.randrange(256)])
            case _:
                start = chance.randrange(len(broken) + 1)
                broken[where:where] = broken[start : start + chance.randint(1, 120)]
    return bytes(broken)


def test_the_state_stays_small_whatever_is_printed() -> None:
    reader = LogReader()
    for number in range(1_200):
        reader.feed(f"saving checkpoint: out/{'x' * 40}-{number}.safetensors\n".encode())
        reader.feed(f"ValueError: {'a' * (number % 97)} {number}\n".encode())
        reader.feed(f"{'bar' * (number % 50)}: 50%|##| 1/2 [00:01<00:01, 1it/s]\r".encode())
    reader.feed(b"y" * 1_000_000)
    assert len(str(reader.state())) < 200_000


_HOSTILE = [
    b"1",
    b" ",
    b"a",
    b".",
    b"-",
    b"/",
    b"a/",
    b"1/",
    b"1,",
    b"[",
    b"[1/2 ",
    b"loss",
    b"loss ",
    b"loss: ",
    b"1:",
    b"epoch 1 ",
    b"a b ",
    b"0: ",
    b"%|",
    b"50%|",
    b"1/2 [00:01<00:01, ",
    b"saving ",
    b"'",
    b"step 1 ",
    b"training ",
    b"\x1b]",
    b"\x1b[1",
    b"Error",
    b"a.",
    b"~",
    b"|",
    b" |",
    b"- ",
    "━".encode(),
    "━ 1/2 ".encode(),
    b"a: 1s ",
    b"num examples = ",
    b"not found ",
    b"file ",
]


@pytest.mark.parametrize("unit", _HOSTILE)
def test_reading_a_long_hostile_line_takes_linear_time(unit: bytes) -> None:
    small, large = _seconds(unit, PIECE_LIMIT_BYTES // 4), _seconds(unit, PIECE_LIMIT_BYTES)
    # Four times the text: about 4 when linear, 16 when quadratic. What takes no time at all is not judged.
    assert large < 0.05 or large / small < 11


def _seconds(unit: bytes, size: int) -> float:
    line = (unit * (size // len(unit) + 1))[:size] + b"\n"
    best = 1e9
    for _ in range(3):
        reader = LogReader()
        started = time.process_time()
        reader.feed(line)
        best = min(best, time.process_time() - started)
    return best


def test_no_pattern_repeats_a_repetition_without_something_fixed_between() -> None:
    nested = [
        (name, pattern.pattern)
        for name, pattern in _patterns()
        if _repeats_freely(sre.parse(pattern.pattern, pattern.flags))
    ]
    assert nested == []


def _patterns() -> list[tuple[str, re.Pattern[Any]]]:
    found: list[tuple[str, re.Pattern[Any]]] = []
    for module in iter_modules(stationmaster.parsers.__path__, "stationmaster.parsers."):
        for name, value in vars(import_module(module.name)).items():
            found += [(f"{module.name}.{name}", pattern) for pattern in _inside(value)]
    assert len(found) > 60
    return found


def _inside(value: object) -> list[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        return [value]
    if isinstance(value, tuple | list):
        return [pattern for item in value for pattern in _inside(item)]
    return []


def _repeats_freely(tree: Any, inside: bool = False) -> bool:
    """Whether an endless repetition that may give back stands right inside another one."""
    for operation, argument in tree:
        if operation in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            _, high, body = argument
            endless = high == codes.MAXREPEAT
            if endless and inside:
                return True
            fixed = body[0][0] is codes.LITERAL or body[-1][0] is codes.LITERAL
            if _repeats_freely(body, inside=endless and not fixed):
                return True
        elif (operation is codes.SUBPATTERN and _repeats_freely(argument[-1], inside)) or (
            operation is codes.BRANCH and any(_repeats_freely(branch, inside) for branch in argument[1])
        ):
            return True
    return False
