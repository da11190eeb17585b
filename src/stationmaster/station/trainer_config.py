"""Monitoring settings in a job file that has the shape of a trainer's config."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stationmaster.errors import UserError

_SHAPE = "config: {process: [{monitoring: {sample_interval_seconds: 5}}]}"


def with_trainer_monitoring(data: dict[Any, Any], file: Path) -> dict[Any, Any]:
    """The file's values with `config.process[].monitoring` under `monitoring`, whose own values win.

    Raises UserError for anything else below `config`: a value that is not used must not look as if it were.

    >>> with_trainer_monitoring({"config": {"process": [{"monitoring": {"enabled": False}}]}}, Path("job.yaml"))
    {'monitoring': {'enabled': False}}
    """
    if "config" not in data:
        return data
    rest = {key: value for key, value in data.items() if key != "config"}
    found = _found(data["config"], file)
    own = rest.get("monitoring")
    if own is None:
        return {**rest, "monitoring": found}
    return {**rest, "monitoring": {**found, **own}} if isinstance(own, dict) else rest


def _found(config: Any, file: Path) -> dict[str, Any]:
    processes = _only(config, "process", at="config", file=file)
    if not isinstance(processes, list | None):
        raise UserError(f"{file}: config.process must be a list", hint=f"write {_SHAPE}")
    blocks = []
    for number, process in enumerate(processes or ()):
        at = f"config.process[{number}]"
        block = _only(process, "monitoring", at=at, file=file)
        if not isinstance(block, dict | None):
            raise UserError(f"{file}: {at}.monitoring must be a table of names and values", hint=f"write {_SHAPE}")
        if block is not None and block not in blocks:
            blocks.append(block)
    if len(blocks) > 1:
        raise UserError(
            f"{file}: config.process has {len(blocks)} different monitoring blocks, but a job is one training",
            hint="keep one of them, or submit a job for each",
        )
    return blocks[0] if blocks else {}


def _only(table: Any, key: str, *, at: str, file: Path) -> Any:
    """The only value of a table that is used; None if it is missing."""
    if table is None:
        return None
    if not isinstance(table, dict):
        raise UserError(f"{file}: {at} must be a table of names and values", hint=f"write {_SHAPE}")
    if other := next((name for name in table if name != key), None):
        raise UserError(
            f"{file}: {at}.{other} is not supported in a job file, only {at}.{key} is",
            hint="put the recipe's parameters under `parameters`",
        )
    return table.get(key)
