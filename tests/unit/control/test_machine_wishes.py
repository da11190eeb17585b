"""What a job asks of its machine beyond its recipe reaches the search for offers, and is stored with the job."""

from __future__ import annotations

import json
from pathlib import Path

from stationmaster.control.flow.world import Rules
from stationmaster.control.states.provisioning.market import requirements
from stationmaster.model import AppliedAdvice, MachineWish
from stationmaster.recipes.registry import find, load
from stationmaster.recipes.wishes import with_wish
from stationmaster.settings import MonitoringSettings
from stationmaster.store.codec import spec_from_text, spec_to_text
from tests.support.jobs.spine_values import job, spec

FLUX = find("flux-lora@2").recipe
CONTAINED = load(Path(__file__).parents[2] / "fixtures" / "training-tools" / "everything").recipe
CHANGE = AppliedAdvice(
    number=1, what="ema", before=True, after=False, severity="critical", title="EMA off", config_path="x.use_ema"
)


def rules_of(wish: MachineWish, recipe: str = "flux-lora@2") -> Rules:
    return Rules(spec(machine=wish, recipe=recipe), find, MonitoringSettings())


def test_a_wish_raises_what_the_recipe_needs() -> None:
    wish = MachineWish(vram_gib=44.6, disk_gib=160.0, avoided_machines=("4711",))
    want = requirements(job(spec=spec(machine=wish)), rules_of(wish).stored.recipe)
    assert (want.vram_gib, want.disk_gib, want.avoided_machines) == (44.6, 160.0, frozenset({"4711"}))


def test_a_wish_never_lowers_what_the_recipe_needs() -> None:
    for wish in (MachineWish(), MachineWish(vram_gib=1.0, disk_gib=1.0, memory_gib=1.0, shm_gib=0.1)):
        assert with_wish(FLUX, wish) == FLUX
        assert with_wish(CONTAINED, wish) == CONTAINED


def test_a_container_gets_the_limits_that_the_job_asks_for() -> None:
    container = with_wish(CONTAINED, MachineWish(memory_gib=4.0, shm_gib=2.0)).container
    assert container is not None
    assert (container.memory_gib, container.shm_gib) == (4.0, 2.0)


def test_a_container_without_a_limit_gets_none() -> None:
    assert CONTAINED.container is not None
    free = CONTAINED.model_copy(update={"container": CONTAINED.container.model_copy(update={"memory_gib": None})})
    container = with_wish(free, MachineWish(memory_gib=4.0)).container
    assert container is not None
    assert container.memory_gib is None


def test_wishes_and_changes_are_stored_with_the_job() -> None:
    full = spec(machine=MachineWish(disk_gib=2.0, avoided_machines=("1", "2")), applied=(CHANGE,))
    assert spec_from_text(spec_to_text(full)) == full


def test_a_job_of_an_older_version_has_none() -> None:
    old = {key: value for key, value in json.loads(spec_to_text(spec())).items() if key not in ("machine", "applied")}
    assert spec_from_text(json.dumps(old)) == spec()
