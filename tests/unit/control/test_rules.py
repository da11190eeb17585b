"""A visit resolves a job's recipe and monitoring settings when they are needed, and once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stationmaster.control.flow.world import Rules, Visit
from stationmaster.control.states.releasing.cleanup import cleanup_limit
from stationmaster.errors import NotFound
from stationmaster.model import State
from stationmaster.recipes.registry import StoredRecipe, find
from stationmaster.settings import MonitoringSettings
from tests.support.jobs.spine_values import MACHINE, job, spec, visit

DEFAULTS = MonitoringSettings(save_timeout=77.0)


class Shelf:
    """Where recipes are found; it counts how often somebody looks."""

    def __init__(self, *, empty: bool = False) -> None:
        self.looks = 0
        self._empty = empty

    def find(self, reference: str) -> StoredRecipe:
        self.looks += 1
        if self._empty:
            raise NotFound(f"there is no recipe {reference}")
        return find(reference)


def visited(shelf: Shelf, **block: Any) -> Visit:
    looked_at = job(spec=spec(monitoring=block), state=State.RELEASING, machine=MACHINE)
    return replace(visit(looked_at), rules=Rules(looked_at.spec, shelf.find, DEFAULTS))


def test_a_recipe_is_looked_for_once_however_often_the_visit_is_passed_on() -> None:
    shelf = Shelf()
    seen = visited(shelf)
    assert shelf.looks == 0
    again = replace(seen, now=101.0, job=replace(seen.job, attempt=2))
    assert again.recipe is seen.recipe is seen.stored_recipe.recipe
    assert shelf.looks == 1


def test_a_recipe_that_was_taken_away_is_missed_only_where_it_is_needed() -> None:
    seen, nobody = visited(Shelf(empty=True)), object()
    assert seen.monitoring is DEFAULTS
    assert cleanup_limit(seen, nobody) is None  # type: ignore[arg-type]  # nobody else is asked either
    with pytest.raises(NotFound):
        _ = seen.recipe


def test_a_job_s_own_monitoring_is_laid_over_the_installation_s_once() -> None:
    seen = visited(Shelf(), poll_interval=5.0)
    assert (seen.monitoring.poll_interval, seen.monitoring.save_timeout) == (5.0, 77.0)
    assert replace(seen, now=102.0).monitoring is seen.monitoring
