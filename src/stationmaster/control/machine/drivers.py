"""Container engines and GPU drivers that a recipe needs of a machine's system: reported where they are missing.

Nothing is installed blindly: only on a machine of one's own, by root, and where `bootstrap.install_drivers` says so.
In a rented container neither would help, for they belong to the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import Any

from stationmaster.control.flow.policy import Policy
from stationmaster.errors import CommandFailed, Unreachable
from stationmaster.model import Rental
from stationmaster.recipes.schema import Recipe
from stationmaster.remote.base import Remote
from stationmaster.store.writes import NewEvent

_DRIVER = "nvidia-driver"
_OWN_MACHINES = "ssh"
_INSTALL_SECONDS = 1800.0
_GIB = 1024**3


def missing_parts(facts: dict[str, Any], recipe: Recipe) -> tuple[str, ...]:
    """Parts of the system that the recipe needs and the machine lacks; empty where the machine did not report them."""
    tools = facts.get("tools")
    if tools is None:
        return ()
    lacks_driver = recipe.needs.gpus > 0 and not facts.get("gpus") and not facts.get("driver")
    lacks_engine = recipe.runtime != "host" and recipe.runtime not in tools
    return (*([_DRIVER] if lacks_driver else []), *([recipe.runtime] if lacks_engine else []))


def may_install(rental: Rental, policy: Policy) -> bool:
    return policy.bootstrap.install_drivers and rental.provider == _OWN_MACHINES


def advice(rental: Rental, policy: Policy) -> str:
    """What to do about it, appended to the sentence that names the missing parts."""
    if rental.provider != _OWN_MACHINES or policy.bootstrap.install_drivers:
        return ""
    return "; install it there, or let root do it with bootstrap.install_drivers"


async def install(remote: Remote, parts: Sequence[str]) -> None:
    """Install the parts with the machine's package manager, as root. Safe to repeat. Raises CommandFailed."""
    argv = ["sh", "-s", "--", *parts]
    script = resources.files(__package__).joinpath("install_drivers.sh").read_bytes()
    done = await remote.run(argv, input=script, timeout=_INSTALL_SECONDS)
    if done.exit_status is None:
        raise Unreachable(f"the connection was lost while {', '.join(parts)} was being installed")
    if done.exit_status != 0:
        last_line = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no reason given"]
        raise CommandFailed(f"{', '.join(parts)} is missing and could not be installed: {last_line[0]}")


def machine_checked_event(facts: dict[str, Any], missing: Sequence[str]) -> NewEvent:
    """The event that records what the machine has."""
    free = facts.get("disk_free_bytes")
    payload = {
        "gpus": [gpu.get("name") for gpu in facts.get("gpus") or []],
        "driver": facts.get("driver"),
        "cuda": facts.get("cuda"),
        "tools": list(facts.get("tools") or []),
        "disk_free_gib": None if free is None else round(free / _GIB, 1),
        "missing": list(missing),
    }
    return NewEvent(kind="machine_checked", payload=payload)
