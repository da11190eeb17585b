"""The checkpoints in a training's output folder, in the order of their steps."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_NAMED = re.compile(r"(?:step|iter(?:ation)?|epoch|checkpoint|ckpt)s?[-_=]?(\d{1,12})(?!\d)", re.IGNORECASE)
_AT_THE_END = re.compile(r"[-_.](\d{1,12})$")  # `lora_000000500`, but not `portrait_v2`
_ENDING = re.compile(r"\.[A-Za-z]\w*$")
_SHARD = re.compile(r"-\d+-of-\d+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCheckpoint:
    path: str
    size: int
    mtime: float
    step: int | None


def in_order(rows: Iterable[Mapping[str, Any]]) -> tuple[FoundCheckpoint, ...]:
    """By step, the latest last; names without a step, as trainers give their final save, follow by time."""
    found = [
        FoundCheckpoint(
            path=str(row["path"]),
            size=int(row["size"]),
            mtime=float(row["mtime"]),
            step=step_in_path(str(row["path"])),
        )
        for row in rows
    ]
    return tuple(sorted(found, key=lambda one: (math.inf if one.step is None else one.step, one.mtime, one.path)))


def step_in_path(path: str) -> int | None:
    """The step that a checkpoint's file, or else its folder, is named after.

    >>> [step_in_path(path) for path in ("out/lora_000000500.safetensors", "checkpoint-40/model.safetensors", "v2.pt")]
    [500, 40, None]
    """
    folder, _, name = path.rpartition("/")
    stem = _SHARD.sub("", _ENDING.sub("", name))
    found = _NAMED.search(stem) or _AT_THE_END.search(stem) or _NAMED.search(folder.rpartition("/")[2])
    return int(found[1]) if found else None
