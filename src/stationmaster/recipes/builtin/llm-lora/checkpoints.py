"""The trainer's own checkpoints: folders with adapter, optimizer, schedule and random numbers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

ADAPTER = "adapter_model.safetensors"
STATE = "trainer_state.json"  # the trainer writes it last
_FOLDER = re.compile(r"checkpoint-(\d+)")


class Checkpoint(NamedTuple):
    """A folder that the trainer can resume from."""

    folder: Path
    step: int


def newest_whole(folder: Path) -> Checkpoint | None:
    """The checkpoint with the highest step, among those that were written completely."""
    found = [Checkpoint(each, step) for each in folder.glob("checkpoint-*") if (step := _step_of(each)) is not None]
    return max(found, key=lambda checkpoint: checkpoint.step, default=None)


def _step_of(folder: Path) -> int | None:
    """The step of a complete checkpoint; None for one whose writing was interrupted."""
    named = _FOLDER.fullmatch(folder.name)
    try:
        state = json.loads((folder / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return int(named[1]) if named is not None and state.get("global_step") == int(named[1]) else None
