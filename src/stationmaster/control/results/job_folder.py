"""A job's local folder. Only downloads write to `files/`: a trainer may give its files any names.

files/attempt-1/...               files downloaded after the training, with the trainer's own names
checkpoints/attempt-1/...         checkpoints downloaded during the training
arriving/                         incomplete downloads
sent/...                          config files, as sent to the machine
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
    """The path of a file downloaded after the training: a later attempt may use the same names for other bytes."""
    return folder / _FILES / f"attempt-{attempt}" / path


def collected_path(folder: Path, *, attempt: int, path: str) -> Path:
    """The path of a checkpoint downloaded during the training."""
    return folder / _CHECKPOINTS / f"attempt-{attempt}" / path


def arriving(folder: Path) -> Path:
    """The folder of incomplete downloads."""
    return folder / _ARRIVING


def sent_configs(folder: Path) -> Path:
    """The folder of the job's config files."""
    return folder / _SENT


def keep_only(folder: Path, kept: Iterable[Path]) -> None:
    """Delete all other checkpoints that were downloaded during the training."""
    wanted = set(kept)
    for found in sorted((folder / _CHECKPOINTS).rglob("*")):
        if found.is_file() and found not in wanted:
            found.unlink(missing_ok=True)


def remove_arriving(folder: Path) -> None:
    """Delete incomplete downloads: nothing more is downloaded."""
    shutil.rmtree(folder / _ARRIVING, ignore_errors=True)


def replace_link(name: Path, target: Path) -> None:
    """Create or replace a relative link atomically."""
    fresh = name.with_name(f".{name.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(os.path.relpath(target, name.parent))
    fresh.replace(name)
