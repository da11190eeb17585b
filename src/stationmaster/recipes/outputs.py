"""Which output a file is, and at which training step it was made."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from stationmaster.recipes.schema import Output


def output_of(path: str, outputs: Iterable[Output]) -> Output | None:
    """The first declared output whose pattern is that of `path` (relative to the job's folder)."""
    parts = tuple(path.split("/"))
    return next((output for output in outputs if _matches(parts, tuple(output.pattern.split("/")))), None)


def step_of(path: str, outputs: Iterable[Output], *, offset: int | None = None) -> int | None:
    """The training step in the name of `path`; None where the name has none, as in a final model's.

    `offset` is the step from which a trainer that counts from 0 resumed.
    """
    output = output_of(path, outputs)
    if output is None or output.step is None:
        return None
    found = re.search(output.step, path)
    return int(found[1]) + (offset or 0) if found and found[1] and found[1].isdecimal() else None


def is_safe_to_load(path: str) -> bool:
    """Whether loading a file cannot run code: other kinds, such as pickles, may do anything to a reader."""
    return path.endswith(".safetensors")


def _matches(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_matches(parts[skipped:], pattern[1:]) for skipped in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])
