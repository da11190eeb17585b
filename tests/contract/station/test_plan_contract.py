"""The plan of a job, from the recipe and from events that workers would have written."""

from __future__ import annotations

import pytest

from stationmaster.errors import NotFound
from stationmaster.recipes.registry import find
from stationmaster.store import events
from stationmaster.store.writes import NewEvent
from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.station_kinds import every_station
from tests.support.jobs.stored_jobs import put_trained


@every_station
def test_the_plan_names_steps_values_and_what_became_of_them(world: LocalWorld) -> None:
    store = world.store
    parameters = find("tiny-lora@1").recipe.parameters
    values = {name: parameter.default for name, parameter in parameters.items()}
    put_trained(store, "mine", parameters={**values, "steps": 20})
    with store.database.write() as connection:
        for version, state, at in ((10, "running", 1_000.0), (11, "done", 1_600.0)):
            new = NewEvent(kind="step", payload={"step": "check", "state": state, "try": 1})
            events.append(connection, events.rows("mine", [new], version=version, now=at))
    plan = world.station.jobs.plan("mine")
    assert plan.problem is None
    assert (plan.recipe, plan.attempt) == ("tiny-lora@1", 1)
    assert [step.name for step in plan.steps] == ["check", "train"]
    assert (plan.steps[0].state, plan.steps[1].state) == ("done", None)
    assert {value.name: value.value for value in plan.parameters}["steps"] == 20
    assert [value.name for value in plan.parameters if value.is_changed] == ["steps"]
    with pytest.raises(NotFound):
        world.station.jobs.plan("nobody")


def test_values_are_told_where_the_recipe_can_no_longer_be_filled_in(world: LocalWorld) -> None:
    put_trained(world.store, "old", parameters={"steps": 20})
    plan = world.station.jobs.plan("old")
    assert plan.problem == "the recipe tiny-lora@1 can no longer be filled in"
    assert [(value.name, value.value) for value in plan.parameters] == [("steps", 20)]
