"""A small recipe of shell scripts, and whole jobs of it on this computer, for tests of what a recipe may declare."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from stationmaster.model import Alert, Event
from stationmaster.station.proposals import TrainRequest
from tests.support.jobs.local_world import LocalWorld, write_pictures
from tests.support.jobs.submitting import submit

_HEAD = """\
name: scripted
version: 1
title: A recipe of scripts
description: Does what a test's script says.
needs: {gpus: 0, disk_gib: 0.1}
dataset: {min_images: 1}
parameters:
  steps: {type: int, default: 3, help: How many.}
  note: {type: str, default: "", help: Any text.}
outputs: [{pattern: "output/*.safetensors", kind: checkpoint, step: '-(\\d+)\\.safetensors$'}]
time: {seconds_per_step: 0.01}
"""

#: Leaves one small model that opens, from a shell that has little more than printf.
MODEL = (
    "printf '\\065\\000\\000\\000\\000\\000\\000\\000"
    '{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}x\' >{{ output.dir }}/model.safetensors'
)


def scripted(train: str = MODEL, *, more: str = "", step: str = "") -> str:
    """The text of the recipe: its training is a shell script; `more` are further fields."""
    lines = textwrap.indent(train, " " * 6)
    return f"{_HEAD}{textwrap.dedent(more)}steps:\n  - name: train\n    training: true\n{step}    shell: |\n{lines}\n"


class RecipeWorld(LocalWorld):
    """An installation whose only own recipe is the given one."""

    def __init__(self, folder: Path, recipe: str, **environ: str) -> None:
        recipes = folder / "recipes" / "scripted"
        recipes.mkdir(parents=True)
        (recipes / "recipe.yaml").write_text(recipe, encoding="utf-8")
        super().__init__(folder, STATIONMASTER_RECIPES=str(folder / "recipes"), **environ)
        self.patience_seconds = 240.0  # these jobs start many processes, and a computer may be very busy
        self.recipe_folder = recipes
        self.pictures = write_pictures(folder / "pictures")

    def submit(self, **fields: Any) -> str:
        request = TrainRequest(recipe="scripted@1", dataset=self.pictures, **{"name": "scripted", **fields})
        return submit(self.station, request).job.id

    def told(self, job_id: str, kind: str) -> list[Event]:
        return [event for event in self.station.events.of_job(job_id) if event.kind == kind]

    def alerts(self) -> list[Alert]:
        return self.local.store.alerts.open()
