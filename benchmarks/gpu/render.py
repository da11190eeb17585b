"""Render a recipe's plan for the GPU machine, which need not have Stationmaster's packages.

    python benchmarks/gpu/render.py flux-lora --weights /tmp/measure/flux --trainer /tmp/measure/bundle/ai-toolkit \\
        --out plans/flux-lora.json --set steps=18 --set low_vram=true

Prints nothing. The file holds the configs and the steps exactly as trackside gets them.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from stationmaster.recipes.parameters import resolve
from stationmaster.recipes.plan import JobIdentity, render_plan
from stationmaster.recipes.registry import find


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe")
    parser.add_argument("--weights", required=True, help="base model on the GPU machine")
    parser.add_argument("--trainer", required=True, help="the trainer's folder on the GPU machine")
    parser.add_argument("--root", default="/tmp/measure/jobs", help="folder of the job folders on the GPU machine")
    parser.add_argument("--python", default="python3", help="the GPU machine's Python")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--set", dest="given", action="append", default=[], metavar="NAME=VALUE")
    arguments = parser.parse_args()
    given = dict(one.split("=", 1) for one in arguments.given)
    rendered = _rendered(arguments, {"base_model": arguments.weights, "trainer": arguments.trainer, **given})
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(rendered, indent=1) + "\n")
    return 0


def _rendered(arguments: argparse.Namespace, given: dict[str, str]) -> dict[str, Any]:
    found = find(arguments.recipe)
    name = arguments.out.stem
    root = f"{arguments.root}/{name}"
    plan = render_plan(
        found.recipe,
        parameters=resolve(found.recipe, {**given, "python": arguments.python}),
        job=JobIdentity(id="01MEASURE", name=name, trigger="ohwx", attempt=1),
        machine_root=root,
    )
    return {
        "name": name,
        "recipe": found.recipe.reference,
        "framework": found.recipe.framework,
        "given": given,
        "root": root,
        "python": arguments.python,
        "recipe_files": {name: file.read_text() for name, file in found.shipped_files()},
        "control": found.recipe.dataset is not None and found.recipe.dataset.control_folder is not None,
        "skip": [*(step.name for step in found.recipe.bootstrap), "health"],
        "configs": {config.path: config.text for config in plan.configs},
        "steps": [step.as_json() for step in plan.steps],
    }


if __name__ == "__main__":
    raise SystemExit(main())
