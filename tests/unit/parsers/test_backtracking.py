"""Patterns that would hold up the watcher are told from those that would not."""

from __future__ import annotations

import re
import time

import pytest

from stationmaster.errors import ConfigInvalid
from stationmaster.parsers.backtracking import slow_on
from stationmaster.parsers.patterns import TEXT_LIMIT, checked_pattern

SLOW = [
    r"(\d+)+ steps", r"(a|a)*b", r"(?:\w+\s?)+$", r"(\s*\w+)*:", r".*.*.*x", r"(.*)(.*)=(.*)z", r"(a|aa)+$",
    r"^(([a-z])+.)+[A-Z]([a-z])+$", r"\s+\s+\s+x", r"((ab)*)*c", r"(x+x+)+y", r"([^,]*,?)*;", r"step (?P<step>(\d+)*)!",
]  # fmt: skip
FINE = [
    r"tick (?P<step>\d+) of (?P<total_steps>\d+) cost (?P<loss>\S+) pace (?P<seconds_per_step>\S+)",
    r"kept as (?P<checkpoint>\S+)",
    r"PANIC (?P<error>.+)",
    r"step (?P<step>\d+).*loss (?P<loss>\S+).*lr (?P<learning_rate>\S+)",
    r"(?:\w+\s)+(?P<step>\d+)",
    r"\[\s*(?P<step>[\d,]+)\s*/\s*(?P<total_steps>[\d,]+)\s*\]\s*loss\s*[:=]\s*(?P<loss>[-+\d.eE]+|nan)",
    r"(?i)^iter(?:ation)?\s+(?P<step>\d+)(?:\s+of\s+(?P<total_steps>\d+))?(?=\s|$)",
    r"(?P<error>.*Error.*)",
    r"(?:\d{1,3}%\|[^|]*\|)\s*(?P<step>\d+)/(?P<total_steps>\d+)",
    r"(?P<step>\d++)(?>/)(?P<total_steps>\d+)(?<!0)",
]


@pytest.mark.parametrize("pattern", SLOW)
def test_a_pattern_that_backtracks_badly_is_found_quickly(pattern: str) -> None:
    began = time.thread_time()
    assert slow_on(pattern) is not None
    assert time.thread_time() - began < 20


@pytest.mark.parametrize("pattern", FINE)
def test_a_pattern_that_people_write_is_left_alone_and_is_quick_on_the_longest_line(pattern: str) -> None:
    assert slow_on(pattern) is None
    compiled = re.compile(pattern)
    for piece in ("0", "a", " ", "step 1 loss 2 ", "0,", "50%|#|", "Error"):
        began = time.thread_time()
        compiled.search((piece * TEXT_LIMIT)[:TEXT_LIMIT] + "\0")
        assert time.thread_time() - began < 1.0, piece


def test_the_person_is_told_on_which_line_and_what_to_do() -> None:
    with pytest.raises(ConfigInvalid, match="is too slow on lines that begin like 'at 0000") as told:
        checked_pattern(r"at (?P<step>(\d+)+) of")
    assert told.value.hint
    with pytest.raises(ConfigInvalid, match="has no named group"):
        checked_pattern("at")
    assert checked_pattern("at", phase="saving").read("at") is not None
