"""The plan of a training that was started by hand: one step that is watched, and the files that usually are models."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

from stationmaster.model.adopted import ADOPTED_RECIPE, UNLIMITED_SECONDS, AdoptedTraining
from stationmaster.recipes.plan import Plan
from stationmaster.recipes.schema import Recipe

FOLDER = "adopted"
"""In the job's folder on the machine: a link to the training's own output folder."""
MODEL_NAMES = ("*.safetensors", "*.ckpt", "*.pt", "*.pth", "*.bin")
_PICTURES = ("png", "jpg", "jpeg", "webp")
_STEP = r"(?:checkpoint-|step|epoch|[-_](?=[0-9]{3}))([0-9]+)(?:/[^/]*)?\.[a-z]+$"
_SINCE_SLACK_SECONDS = 60.0  # clocks of file systems may be coarse, or another machine's


@cache
def adopted_recipe() -> Recipe:
    name, _, version = ADOPTED_RECIPE.partition("@")
    models = [{"pattern": f"{FOLDER}/**/{each}", "kind": "checkpoint", "step": _STEP} for each in MODEL_NAMES]
    samples = [{"pattern": f"{FOLDER}/**/sample*/*.{each}", "kind": "sample"} for each in _PICTURES]
    return Recipe.model_validate_json(
        json.dumps(
            {
                "name": name,
                "version": int(version),
                "title": "A training that was started by hand",
                "description": "Watches a training that was started by hand; runs nothing.",
                "framework": "auto",
                "needs": {"gpus": 0, "vram_gib": 0, "disk_gib": 0.1},
                "steps": [
                    {
                        "name": "train",
                        "argv": ["attached"],
                        "training": True,
                        "expect": [f"{FOLDER}/**/{each}" for each in MODEL_NAMES],
                    }
                ],
                "outputs": [*models, *samples],
                "stop": {"grace": "60s"},
                "time": {"steps": "1", "seconds_per_step": 0},
            }
        )
    )


def adopted_files() -> Path:
    """The folder with the recipe's files, of which there are none."""
    return Path(__file__).parent


def attached(plan: Plan, training: AdoptedTraining, *, dates_log: bool) -> Plan:
    """The plan with its training step attached to the process that runs already.

    With `dates_log` the log so far counts as evenly written since the process started: so the usual pace is known, and
    a training that has stalled already is seen. It is only an estimate, so not for one that may be stopped by it.
    """
    since = training.started_at
    attach = {
        "process": None if training.process is None else dict(training.process),
        "log": training.log,
        "output": training.output,
        "begun": since if dates_log else None,
        "since": None if since is None else since - _SINCE_SLACK_SECONDS,
    }
    steps = (
        replace(step, argv=(), timeout_seconds=UNLIMITED_SECONDS, stop_signal=training.stop_signal, attach=attach)
        if step.training
        else step
        for step in plan.steps
    )
    return replace(plan, steps=tuple(steps))
