"""A job's folder at home: where its files lie, and the well-known names in it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

LATEST = "latest_checkpoint.safetensors"
MODEL = "model.safetensors"
_CHECKPOINTS = "checkpoints"


def stays_inside(path: str) -> bool:
    """A machine is not ours alone: what it calls a file must not lead out of the job's folder at home."""
    parts = PurePosixPath(path).parts
    return bool(parts) and ".." not in parts and not path.startswith("/") and "\0" not in path


def collected_path(folder: Path, *, attempt: int, path: str) -> Path:
    """Where a checkpoint of a running training goes: a later attempt may use the same names for other bytes."""
    return folder / _CHECKPOINTS / f"attempt-{attempt}" / path


def keep_only(folder: Path, kept: Iterable[Path]) -> None:
    """No other checkpoints of running trainings are left in the folder."""
    wanted = set(kept)
    for found in sorted((folder / _CHECKPOINTS).rglob("*")):
        if found.is_file() and found not in wanted:
            found.unlink(missing_ok=True)


def link(name: Path, target: Path) -> None:
    """A relative link, replaced in one go."""
    fresh = name.with_name(f".{name.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(os.path.relpath(target, name.parent))
    fresh.replace(name)
