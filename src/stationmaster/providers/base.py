"""The interface of machine providers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, runtime_checkable

from stationmaster.model import Charge, Listing, Machine, Offer, Requirements
from stationmaster.money import MicroDollars
from stationmaster.offers import NoOffer, Ranking


class Provider(Protocol):
    """One source of machines, under one account. Each method is one call; policy belongs to control.

    Reads raise ProviderBusy, ProviderFault or AccessRefused without a reliable answer: none of these ever means that a
    machine is gone.
    """

    @property
    def name(self) -> str: ...

    @property
    def create_limit_seconds(self) -> float:
        """Seconds after which a create that was sent has made a machine that is listed, or never will."""

    async def offers(self, want: Requirements) -> list[Offer]:
        """Offers that can be rented now and satisfy `want`, best first."""

    async def create(self, offer: Offer, *, label: str, want: Requirements) -> str:
        """Rent one machine with this `label` and return its id.

        NoCapacity, ProviderBusy and AccessRefused: nothing was rented. AnswerLost: it may have been rented; the caller
        looks for the label before it retries.
        """

    async def listing(self) -> Listing:
        """All machines of the account, including those that are not ours."""

    async def describe(self, provider_id: str) -> Machine | None:
        """One machine; None only if the provider answers that it does not exist."""

    async def destroy(self, provider_id: str) -> None:
        """Ask the provider to destroy the machine; does nothing if it is gone. Only listings and describe prove it."""


@runtime_checkable
class CanStop(Protocol):
    """A provider whose machines can be stopped, keeping their disk, and started again."""

    async def stop(self, provider_id: str) -> None: ...

    async def start(self, provider_id: str) -> bool:
        """True if it is starting; False if the provider only queued the start, which may bill much later."""


@runtime_checkable
class CanRelabel(Protocol):
    """A provider that can give a machine another label, so that one that was rented by hand becomes a job's."""

    async def relabel(self, provider_id: str, label: str) -> None:
        """Raises NoCapacity if the machine does not exist, AnswerLost if it may or may not have the label now."""


@runtime_checkable
class HasClusters(Protocol):
    """A provider that gives one job several machines that train together."""

    @property
    def most_nodes(self) -> int: ...


@runtime_checkable
class KnowsHostKeys(Protocol):
    """A provider that can report a machine's SSH host keys before the first login."""

    async def host_keys(self, provider_id: str) -> tuple[str, ...]:
        """Public host keys, one OpenSSH line each; empty until the machine has printed them."""


@runtime_checkable
class KnowsKeys(Protocol):
    """A provider that stores public SSH keys for its machines."""

    async def account_keys(self) -> tuple[str, ...]: ...

    async def add_account_key(self, public_key: str) -> None:
        """Add the key to the account; does nothing if it is there."""

    async def attach_key(self, provider_id: str, public_key: str) -> None:
        """Authorize the key on the machine; does nothing if it is authorized."""


@runtime_checkable
class CanLetUsIn(Protocol):
    """A provider that can authorize the key that we log in with on a machine that was rented without it."""

    async def let_us_in(self, provider_id: str) -> None: ...


@runtime_checkable
class NeedsKey(Protocol):
    """A provider whose machines need a local key pair before anything is rented."""

    def require_key(self) -> None:
        """Raise ConfigInvalid, with a hint, if there is no such pair."""


@runtime_checkable
class RanksOffers(Protocol):
    """A provider with a market: the cost of each offer for the whole job, and why others were excluded."""

    async def ranking(self, want: Requirements) -> Ranking: ...


@runtime_checkable
class ExplainsNoOffer(Protocol):
    """A provider that knows why `offers` is empty."""

    async def why_no_offer(self, want: Requirements) -> NoOffer:
        """Why nothing that is there satisfies `want`, and only what would help. Asked after `offers` was empty."""


@runtime_checkable
class HasPlaces(Protocol):
    """A provider with a fixed number of places, such as the GPUs of this computer: a job that fits waits for one."""

    async def waiting_reason(self, want: Requirements) -> str | None:
        """Which jobs use every place that would fit; None if one is free, or if none would fit."""


@runtime_checkable
class KnowsTime(Protocol):
    """A provider whose answers tell the time."""

    @property
    def clock_ahead_seconds(self) -> float | None:
        """How far this computer's clock was ahead of the provider's at its last answer; None without an answer."""


@runtime_checkable
class KnowsMoney(Protocol):
    """A provider that reports the credit left and what was billed."""

    @property
    def billed_after_seconds(self) -> float:
        """Seconds after a machine's end until its charges are complete."""

    async def credit(self) -> MicroDollars: ...

    async def charges(self, *, since: float, until: float) -> list[Charge]:
        """Charges for the account's machines in the span; may grow for some hours after a machine is destroyed."""


Pause = Callable[[float], Awaitable[None]]
"""Waits for this many seconds; a command shows the wait to the user."""


class Limiter(Protocol):
    """Spaces calls to one endpoint of one account, across all processes that share a store."""

    async def wait_for_turn(
        self, account: str, endpoint: str, *, interval_seconds: float, continues: bool = False, pause: Pause
    ) -> None:
        """Wait until the call may be made; one that `continues` the previous call does not wait for it."""

    async def note_answer(
        self, account: str, endpoint: str, *, interval_seconds: float, pause_seconds: float = 0.0
    ) -> None:
        """Record that the call is over. The interval begins now, because the service counts the call when it arrives,
        not when we took the turn. `pause_seconds`: the service asked for no further call for that long."""
