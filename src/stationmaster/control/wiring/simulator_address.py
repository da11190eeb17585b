"""The URL of a home's simulator: written by the simulator while it runs, read by commands and workers."""

from __future__ import annotations

import json
from pathlib import Path

from stationmaster.files import write_atomically


def simulator_home(home: Path) -> Path:
    """The folder of the simulator and its machines."""
    return home / "simulator"


def simulator_address(home: Path) -> dict[str, str] | None:
    """The URL of this home's simulator, if one runs."""
    try:
        address: dict[str, str] = json.loads(_file(home).read_text())
    except (OSError, ValueError):
        return None
    return address


def write_simulator_address(home: Path, *, url: str, api_key: str, rate_limit_scale: float) -> None:
    """Publish the simulator to this home's jobs. The file is never half-written, and only its owner can read it."""
    address = {"url": url, "api_key": api_key, "rate_limit_scale": rate_limit_scale}
    write_atomically(_file(home), json.dumps(address), mode=0o600)


def remove_simulator_address(home: Path) -> None:
    _file(home).unlink(missing_ok=True)


def _file(home: Path) -> Path:
    return simulator_home(home) / "address.json"
