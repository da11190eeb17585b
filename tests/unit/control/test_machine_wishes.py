"""What a job asks of its machine beyond its recipe reaches the search for offers, and is stored with the job."""

from __future__ import annotations

import json

from stationmaster.control.states.provisioning.market import requirements
from stationmaster.model import AppliedAdvice, MachineWish
from stationmaster.recipes.registry import find
from stationmaster.store.codec import spec_from_text, spec_to_text
from tests.support.jobs.spine_values import job, spec

FLUX = find("flux-lora@2").recipe
CHANGE = AppliedAdvice(
    number=1, what="ema", before=True, after=False, severity="critical", title="EMA off", config_path="x.use_ema"
)


def test_a_wish_raises_what_the_recipe_needs() -> None:
    wish = MachineWish(vram_gib=44.6, disk_gib=160.0, avoided_machines=("4711",))
    want = requirements(job(spec=spec(machine=wish)), FLUX)
    assert (want.vram_gib, want.disk_gib, want.avoided_machines) == (44.6, 160.0, frozenset({"4711"}))


def test_a_wish_never_lowers_what_the_recipe_needs() -> None:
    for wish in (MachineWish(), MachineWish(vram_gib=1.0, disk_gib=1.0)):
        want = requirements(job(spec=spec(machine=wish)), FLUX)
        assert (want.vram_gib, want.disk_gib) == (FLUX.needs.vram_gib, FLUX.needs.disk_gib)
        assert want.avoided_machines == frozenset()


def test_wishes_and_changes_are_stored_with_the_job() -> None:
    full = spec(machine=MachineWish(disk_gib=2.0, avoided_machines=("1", "2")), applied=(CHANGE,))
    assert spec_from_text(spec_to_text(full)) == full


def test_a_job_of_an_older_version_has_none() -> None:
    old = {key: value for key, value in json.loads(spec_to_text(spec())).items() if key not in ("machine", "applied")}
    assert spec_from_text(json.dumps(old)) == spec()
