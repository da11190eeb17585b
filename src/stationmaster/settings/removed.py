"""Settings of earlier versions: a file that still has them loads, with one warning line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

REMOVED: Mapping[str, str] = {
    "bucket.ticket": "it is now fixed",
    "limits.suspicion": "it is now fixed",
    "notify.look": "it is now fixed",
    "notify.timeout": "it is now fixed",
    "vastai.create_limit": "it is now fixed",
    "vastai.guard_abandon": "set sweep.abandon_after",
    "vastai.guard_look": "it follows vastai.guard_idle",
    "worker.settled": "it is now fixed",
}
"""Dotted name of each removed setting or section, and what to use instead."""


def take_removed(data: dict[str, Any], removed: Mapping[str, str]) -> list[str]:
    """Remove the settings in `removed` from `data`. Returns the names that were there.

    >>> data = {"worker": {"pace": 3, "slots": 4}}
    >>> take_removed(data, {"worker.pace": "set worker.slots"}), data
    (['worker.pace'], {'worker': {'slots': 4}})
    """
    return [name for name in removed if _take(data, name.split("."))]


def removed_name(dotted: str, removed: Mapping[str, str]) -> str | None:
    """The entry of `removed` for this setting or for its section; None if there is none."""
    return next((name for name in removed if dotted == name or dotted.startswith(f"{name}.")), None)


def warning_of(names: Sequence[str], removed: Mapping[str, str]) -> str:
    """
    >>> warning_of(["worker.pace"], {"worker.pace": "set worker.slots"})
    'worker.pace is no longer a setting and is ignored (set worker.slots)'
    """
    return "; ".join(f"{name} is no longer a setting and is ignored ({removed[name]})" for name in names)


def _take(data: Any, path: list[str]) -> bool:
    *sections, last = path
    for section in sections:
        data = data.get(section) if isinstance(data, dict) else None
    if not isinstance(data, dict) or last not in data:
        return False
    del data[last]
    return True
