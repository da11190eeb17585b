"""Which providers a job of this installation can run on now."""

from __future__ import annotations

from dataclasses import dataclass

from stationmaster.control.wiring.simulator_address import simulator_address
from stationmaster.settings import Settings
from stationmaster.settings.machines import vast_name


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUpProvider:
    name: str
    what: str  # one phrase
    costs: bool  # whether its machines may have a price


def set_up_providers(settings: Settings) -> tuple[SetUpProvider, ...]:
    """Those with what they need: machines, a key, or a running simulator."""
    found = [
        SetUpProvider(name="loopback", what="this computer", costs=settings.loopback.price_per_hour > 0),
    ]
    if settings.ssh.hosts:
        count = len(settings.ssh.hosts)
        what = f"your own machines over SSH ({count} host{'' if count == 1 else 's'})"
        costs = any(host.price_per_hour > 0 for host in settings.ssh.hosts)
        found.append(SetUpProvider(name="ssh", what=what, costs=costs))
    for account in settings.vastai.keys_by_account():
        name = vast_name(account)
        what = "rented at Vast.ai" if name == "vastai" else f"rented at Vast.ai with the account {account}"
        found.append(SetUpProvider(name=name, what=what, costs=True))
    if simulator_address(settings.home) is not None:
        found.append(SetUpProvider(name="simulator", what="a simulated Vast.ai on this computer", costs=True))
    return tuple(found)
