"""The SSH key pair for rented machines, and the host keys of a person's own machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicKey:
    """One key as people compare it: `fingerprint` is what `ssh-keygen -l` prints."""

    line: str  # as OpenSSH writes it
    fingerprint: str

    @property
    def kind(self) -> str:
        return self.line.split()[0]

    @property
    def comment(self) -> str:
        return " ".join(self.line.split()[2:])

    def is_same_as(self, other: PublicKey) -> bool:
        """Ignores the comments."""
        return self.line.split()[:2] == other.line.split()[:2]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountKeys:
    """The keys that a provider has for an account, and whether ours is among them."""

    keys: tuple[PublicKey, ...]
    knows_ours: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyStanding:
    """Our key pair, and whether each provider that keeps keys has it."""

    private_path: str
    public_path: str
    public: PublicKey
    made: bool  # created by this call
    providers: Mapping[str, AccountKeys]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedHostKey:
    """The key that a machine shows, beside those that a person has confirmed for it."""

    host: str  # as typed
    key: PublicKey
    pinned: tuple[PublicKey, ...]
    file: str  # with the confirmed keys

    @property
    def is_new(self) -> bool:
        return not any(self.key.is_same_as(known) for known in self.pinned)


class Keys(Protocol):
    def setup(self) -> KeyStanding:
        """Create a key pair if there is none, and register it with every provider. May be repeated.

        Raises ConfigInvalid for a pair that cannot be used, ProviderError.
        """

    def check(self) -> KeyStanding:
        """Changes nothing. Raises ConfigInvalid if there is no pair or its halves do not match, ProviderError."""

    def offered_by(self, host: str) -> OfferedHostKey:
        """The host key of a machine, given by its name in ssh.hosts or as ADDRESS[:PORT].

        Raises UserError for an invalid name, RemoteError for a machine that does not answer.
        """

    def pin(self, host: str, key: PublicKey) -> None:
        """Pin this key, which a person has compared, as the only host key of the machine. Raises UserError."""
