"""This computer as a cloud: two creates with one label make two machines, and what became of each is written down."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, replace
from pathlib import Path

from stationmaster.model import Listing, Machine, Offer, Requirements
from stationmaster.providers.loopback import LoopbackProvider

_SEPARATOR = "--"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """A machine that was made: whether it ever held a job's files, and whether it is gone."""

    provider_id: str
    used: bool = False
    destroyed: bool = False


class NumberedLoopback:
    """The loopback provider, except that a machine's id is not its label."""

    name = "loopback"
    create_limit_seconds = 1.0

    def __init__(self, inner: LoopbackProvider, home: Path) -> None:
        self._inner = inner
        self._home = home

    async def offers(self, want: Requirements) -> list[Offer]:
        return await self._inner.offers(want)

    async def create(self, offer: Offer, *, label: str, want: Requirements) -> str:
        provider_id = await self._inner.create(offer, label=f"{label}{_SEPARATOR}{secrets.token_hex(3)}", want=want)
        _note(self._home, made=provider_id)
        return provider_id

    async def listing(self) -> Listing:
        listing = await self._inner.listing()
        return replace(listing, machines=tuple(_labelled(machine) for machine in listing.machines))

    async def describe(self, provider_id: str) -> Machine | None:
        machine = await self._inner.describe(provider_id)
        return None if machine is None else _labelled(machine)

    async def destroy(self, provider_id: str) -> None:
        if (self._home / "machines" / provider_id / "jobs").is_dir():
            used = any((self._home / "machines" / provider_id / "jobs").iterdir())
            _note(self._home, destroyed=provider_id, used=used)
        await self._inner.destroy(provider_id)


def fates(home: Path) -> list[Fate]:
    """Every machine that was ever made, in order."""
    found: dict[str, Fate] = {}
    for line in (home / "machines.jsonl").read_text().splitlines():
        note = json.loads(line)
        name = note.get("made") or note["destroyed"]
        fate = found.get(name, Fate(provider_id=name))
        found[name] = replace(
            fate, used=fate.used or note.get("used", False), destroyed=fate.destroyed or "destroyed" in note
        )
    return list(found.values())


def _note(home: Path, **facts: object) -> None:
    with (home / "machines.jsonl").open("a") as file:  # one short write: lines of several processes do not mix
        file.write(json.dumps(facts) + "\n")


def _labelled(machine: Machine) -> Machine:
    return replace(machine, label=machine.provider_id.rpartition(_SEPARATOR)[0])
