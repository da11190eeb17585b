"""A job's folder at home. Nothing but the fetch writes to `files/`: a trainer may give its files any names.

files/attempt-1/...               what was fetched from the machine, under the trainer's own names
checkpoints/attempt-1/...         checkpoints that came while the training ran
arriving/                         files that are on their way
sent/...                          config files as they were sent to the machine
model.safetensors                 a link to the model
latest_checkpoint.safetensors     a link to the best checkpoint, later to the model
summary.json                      what came of the job
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

LATEST = "latest_checkpoint.safetensors"
MODEL = "model.safetensors"
SUMMARY = "summary.json"
_FILES = "files"
_CHECKPOINTS = "checkpoints"
_ARRIVING = "arriving"
_SENT = "sent"


def fetched_path(folder: Path, *, attempt: int, path: str) -> Path:
    """Where a file of the machine goes after the training: a later attempt may use the same names for other bytes."""
    return folder / _FILES / f"attempt-{attempt}" / path


def collected_path(folder: Path, *, attempt: int, path: str) -> Path:
    """Where a checkpoint of a running training goes."""
    return folder / _CHECKPOINTS / f"attempt-{attempt}" / path


def arriving(folder: Path) -> Path:
    """Where files are until all of their bytes have come."""
    return folder / _ARRIVING


def sent_configs(folder: Path) -> Path:
    """Where the config files that home wrote for the job stay."""
    return folder / _SENT


def keep_only(folder: Path, kept: Iterable[Path]) -> None:
    """No other checkpoints of running trainings are left in the folder."""
    wanted = set(kept)
    for found in sorted((folder / _CHECKPOINTS).rglob("*")):
        if found.is_file() and found not in wanted:
            found.unlink(missing_ok=True)


def remove_arriving(folder: Path) -> None:
    """Nothing more comes: what did not arrive whole, or was not wanted any more half-way, is of no use."""
    shutil.rmtree(folder / _ARRIVING, ignore_errors=True)


def replace_link(name: Path, target: Path) -> None:
    """A relative link, replaced in one go."""
    fresh = name.with_name(f".{name.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(os.path.relpath(target, name.parent))
    fresh.replace(name)
