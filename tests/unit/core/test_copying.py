"""Copies of frozen values."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from stationmaster.model import State
from stationmaster.model.copying import changed
from stationmaster.store.writes import Write
from tests.support.jobs.spine_values import job


def test_a_copy_is_what_replace_makes() -> None:
    before = job()
    assert changed(before, state=State.ENDED, attempt=2) == replace(before, state=State.ENDED, attempt=2)
    assert changed(Write(job=before), due_in=None) == replace(Write(job=before), due_in=None)


def test_the_original_stays_as_it_was() -> None:
    before = job()
    changed(before, attempt=before.attempt + 1)
    assert before == job()


def test_a_field_that_is_not_there_is_refused() -> None:
    with pytest.raises(AttributeError):
        changed(job(), colour="red")


def test_a_value_that_checks_itself_is_not_copied_past_its_check() -> None:
    @dataclass(frozen=True, slots=True)
    class Checked:
        low: int
        high: int

        def __post_init__(self) -> None:
            assert self.low <= self.high

    with pytest.raises(AssertionError, match="has a __post_init__"):
        changed(Checked(1, 2), low=3)
