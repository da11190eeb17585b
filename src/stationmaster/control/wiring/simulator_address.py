"""Where a home's simulator answers: written by the simulator for as long as it runs, read by whoever rents there."""

from __future__ import annotations

import json
from pathlib import Path

from stationmaster.files import write_atomically


def simulator_home(home: Path) -> Path:
    """Where the simulator and its machines lie."""
    return home / "simulator"


def simulator_address(home: Path) -> dict[str, str] | None:
    """Where this home's simulator answers, if one runs."""
    try:
        address: dict[str, str] = json.loads(_file(home).read_text())
    except (OSError, ValueError):
        return None
    return address


def write_simulator_address(home: Path, *, url: str, api_key: str, rate_limit_scale: float) -> None:
    """From now on this home's jobs can rent there. The file is whole at every moment, and for its owner alone."""
    address = {"url": url, "api_key": api_key, "rate_limit_scale": rate_limit_scale}
    write_atomically(_file(home), json.dumps(address), mode=0o600)


def remove_simulator_address(home: Path) -> None:
    _file(home).unlink(missing_ok=True)


def _file(home: Path) -> Path:
    return simulator_home(home) / "address.json"
