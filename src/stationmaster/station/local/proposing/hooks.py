"""A recipe's hooks.py: run locally when a job is submitted, in a separate process with limits of time and memory.

It is the recipe author's code and runs with the rights of the user who submits. The separate process protects this one
from accidents; it does not keep the code from reading what the user can read.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stationmaster.errors import DatasetInvalid, RecipeInvalid
from stationmaster.recipes.parameters import ParameterValue, resolve
from stationmaster.recipes.registry import StoredRecipe

_LIMIT_SECONDS = 30.0
_LIMITS = {"RLIMIT_CPU": 20, "RLIMIT_AS": 2 * 1024**3, "RLIMIT_FSIZE": 0}  # seconds; bytes; no file of any size
_WARNING = "warning: "
_LONGEST_MESSAGE = 300

#: Sets its own limits, where the system has them. Prints go to standard error; the answer alone to standard output.
_RUNNER = """\
import json, resource, runpy, sys
answer_to, sys.stdout = sys.stdout, sys.stderr
asked = json.load(sys.stdin)
for name, most in asked["limits"].items():
    try:
        resource.setrlimit(getattr(resource, name), (most, most))
    except (AttributeError, ValueError, OSError):
        pass
hooks = runpy.run_path(sys.argv[1])
parameters = dict(asked["parameters"])
if "parameters" in hooks:
    parameters.update(hooks["parameters"](dict(parameters), dict(asked["dataset"])) or {})
problems = list(hooks["check"](dict(parameters), dict(asked["dataset"])) or ()) if "check" in hooks else []
json.dump({"parameters": parameters, "problems": problems}, answer_to)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookResult:
    """The parameters after the hooks, and their warnings."""

    parameters: dict[str, ParameterValue]
    notes: tuple[str, ...] = ()


def run_hooks(
    stored: StoredRecipe, parameters: Mapping[str, ParameterValue], dataset: Mapping[str, str | int]
) -> HookResult:
    """The parameters that the recipe derives, checked like any others, and its warnings.

    Raises DatasetInvalid with the first problem that its `check` names, RecipeInvalid if the hooks themselves fail.
    """
    if stored.recipe.hooks is None:
        return HookResult(parameters=dict(parameters))
    asked = {"parameters": dict(parameters), "dataset": dict(dataset), "limits": _LIMITS}
    answer = _answer(stored, asked)
    problems = [str(problem) for problem in answer["problems"]]
    errors = [text for text in problems if not text.startswith(_WARNING)]
    if errors:
        more = f"; {len(errors) - 1} more" if len(errors) > 1 else ""
        raise DatasetInvalid(
            f"{stored.recipe.reference}: {errors[0]}{more}",
            hint="this comes from the recipe's own check; change the dataset or the parameters",
        )
    notes = tuple(text.removeprefix(_WARNING) for text in problems)
    return HookResult(parameters=resolve(stored.recipe, answer["parameters"]), notes=notes)


def _answer(stored: StoredRecipe, asked: Mapping[str, Any]) -> dict[str, Any]:
    assert stored.recipe.hooks is not None
    file = (stored.folder / stored.recipe.hooks).resolve()
    try:
        with tempfile.TemporaryDirectory(prefix="stationmaster-hooks-") as folder:
            done = subprocess.run(
                [sys.executable, "-I", "-B", "-c", _RUNNER, str(file)],
                input=json.dumps(asked).encode(),
                capture_output=True,
                cwd=folder,
                env={"PATH": os.defpath, "LANG": "C.UTF-8"},
                timeout=_LIMIT_SECONDS,
                check=False,
            )
    except subprocess.TimeoutExpired:
        raise _failed(stored, f"took longer than {_LIMIT_SECONDS:.0f} s") from None
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise _failed(stored, lines[-1][:_LONGEST_MESSAGE] if lines else f"exit code {done.returncode}")
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        raise _failed(stored, "did not print a valid answer") from None
    return dict(answer)


def _failed(stored: StoredRecipe, why: str) -> RecipeInvalid:
    name = f"{stored.recipe.reference}: {stored.recipe.hooks}"
    return RecipeInvalid(
        f"{name}: {why}", hint="ask the recipe's author to fix it; `stationmaster recipes lint` names the file"
    )
