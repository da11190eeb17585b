"""Accounts: API key, payments, and the SSH keys for new machines."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stationmaster.money import MicroDollars
from stationmaster.simulator.instances import SshKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    id: int
    name: str
    api_key: str
    paid_in: MicroDollars
    ssh_keys: tuple[SshKey, ...] = ()

    def with_paid_in(self, amount: MicroDollars) -> Account:
        return replace(self, paid_in=amount)

    def with_key(self, key: SshKey) -> Account:
        """Add a key; replaces an entry with the same text."""
        others = tuple(known for known in self.ssh_keys if known.text != key.text and known.id != key.id)
        return replace(self, ssh_keys=(*others, key))

    def without_key(self, key_id: int) -> Account:
        return replace(self, ssh_keys=tuple(known for known in self.ssh_keys if known.id != key_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The caller: an account, or one of its instances with the instance's own key."""

    account_id: int
    instance_id: int | None = None
