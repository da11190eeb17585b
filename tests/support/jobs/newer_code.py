"""A copy of Stationmaster as a later version might be: with one more state between fetching and finalizing."""

from __future__ import annotations

import shutil
from pathlib import Path

import stationmaster

NEW_STATE = "VERIFYING"
HOLD = "hold"  # while the home has a file of this name, jobs stay in the new state

_HANDLER = '''\
"""VERIFYING: the model is home. Somebody looks at it once more."""

from __future__ import annotations

from typing import NoReturn

from stationmaster.control.flow.step import Handler, Step, go_on, wait
from stationmaster.control.flow.world import Visit, World
from stationmaster.control.flow.policy import Policy
from stationmaster.lifecycle import Move
from stationmaster.model import Job
from stationmaster.store.writes import Write


async def observe(visit: Visit, world: World) -> tuple[Visit, bool]:
    return visit, (world.home / "hold").exists()


def decide(seen: tuple[Visit, bool], _policy: Policy) -> Step[NoReturn]:
    visit, held = seen
    return Step(write=wait(visit.job, 0.1) if held else go_on(visit.job, Move.VERIFIED, now=visit.now))


async def perform(_action: NoReturn, job: Job, _seen: tuple[Visit, bool], _world: World) -> Write:
    raise AssertionError("nothing to do")


HANDLER = Handler(observe=observe, decide=decide, perform=perform)
'''

_EDITS = (
    (
        "model/states.py",
        '    FINALIZING = "FINALIZING"',
        f'    {NEW_STATE} = "{NEW_STATE}"\n    FINALIZING = "FINALIZING"',
    ),
    ("lifecycle.py", '    PUBLISHED = "PUBLISHED"', '    VERIFIED = "VERIFIED"\n    PUBLISHED = "PUBLISHED"'),
    (
        "lifecycle.py",
        "    (State.FETCHING_RESULTS, Move.MODEL_SAFE): State.FINALIZING,\n",
        f"    (State.FETCHING_RESULTS, Move.MODEL_SAFE): State.{NEW_STATE},\n"
        f"    (State.{NEW_STATE}, Move.VERIFIED): State.FINALIZING,\n",
    ),
    ("control/reconcile.py", "import ended, queued\n", "import ended, queued, verifying\n"),
    (
        "control/reconcile.py",
        "    State.FINALIZING: finalizing.HANDLER,\n",
        f"    State.{NEW_STATE}: verifying.HANDLER,\n    State.FINALIZING: finalizing.HANDLER,\n",
    ),
)


def write_newer_code(folder: Path) -> Path:
    """The folder to put on PYTHONPATH in front of everything else."""
    package = folder / "stationmaster"
    shutil.copytree(Path(stationmaster.__file__).parent, package)  # with what is compiled: the files keep their times
    (package / "control" / "states" / "verifying.py").write_text(_HANDLER, encoding="utf-8")
    for name, old, new in _EDITS:
        text = (package / name).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{name} no longer has this once: {old!r}"
        (package / name).write_text(text.replace(old, new), encoding="utf-8")
    return folder
