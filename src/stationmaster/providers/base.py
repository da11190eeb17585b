"""The promise that every provider of machines keeps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, runtime_checkable

from stationmaster.model import Charge, Listing, Machine, Offer, Requirements
from stationmaster.money import MicroDollars
from stationmaster.offers import Ranking


class Provider(Protocol):
    """One source of machines, under one account. Each method is a single conversation; policy belongs to control.

    Reads raise ProviderBusy, ProviderFault or AccessRefused when there is no answer to believe: none of these
    ever means that a machine is gone.
    """

    @property
    def name(self) -> str: ...

    @property
    def create_limit_seconds(self) -> float:
        """After so long a create that was sent has either made a machine that is listed, or never will."""

    async def offers(self, want: Requirements) -> list[Offer]:
        """What can be rented now and satisfies `want`, best first."""

    async def create(self, offer: Offer, *, label: str, want: Requirements) -> str:
        """Rent one machine that carries `label`; its id.

        NoCapacity, ProviderBusy and AccessRefused: nothing was rented. AnswerLost: nobody knows; the caller looks
        for the label before it tries again.
        """

    async def listing(self) -> Listing:
        """All machines of the account, also those that are not ours."""

    async def describe(self, provider_id: str) -> Machine | None:
        """What the provider says of one machine; None only when it says that it does not exist."""

    async def destroy(self, provider_id: str) -> None:
        """Ask for the machine's end; quiet if it has ended. Only listings and describe are the proof."""


@runtime_checkable
class CanStop(Protocol):
    """A provider whose machines can be stopped with their disk kept, and started again."""

    async def stop(self, provider_id: str) -> None: ...

    async def start(self, provider_id: str) -> bool:
        """True when it is starting; False when the provider only queues the wish, which may bill much later."""


@runtime_checkable
class HasClusters(Protocol):
    """A provider that gives several machines to one job, so that they train together."""

    @property
    def most_nodes(self) -> int: ...


@runtime_checkable
class KnowsHostKeys(Protocol):
    """A provider through which a machine's SSH host keys can be read before the first login."""

    async def host_keys(self, provider_id: str) -> tuple[str, ...]:
        """Public host keys, one OpenSSH line each; empty while the machine has not printed them."""


@runtime_checkable
class KnowsKeys(Protocol):
    """A provider that keeps public SSH keys for its machines."""

    async def account_keys(self) -> tuple[str, ...]: ...

    async def add_account_key(self, public_key: str) -> None:
        """The account has the key; quiet if it had."""

    async def attach_key(self, provider_id: str, public_key: str) -> None:
        """The machine lets the key in; quiet if it did."""


@runtime_checkable
class NeedsKey(Protocol):
    """A provider whose machines let us in by a key pair that has to be here before anything is rented."""

    def require_key(self) -> None:
        """Raises ConfigInvalid, with what to do, where there is no such pair."""


@runtime_checkable
class RanksOffers(Protocol):
    """A provider with a market: what each offer costs for the whole job, and why others were left out."""

    async def ranking(self, want: Requirements) -> Ranking: ...


@runtime_checkable
class KnowsMoney(Protocol):
    """A provider that can say what is left and what was billed."""

    @property
    def billed_after_seconds(self) -> float:
        """Seconds after a machine's end until its charges are complete."""

    async def credit(self) -> MicroDollars: ...

    async def charges(self, *, since: float, until: float) -> list[Charge]:
        """What machines of the account were billed in the span; may grow for some hours after a machine's end."""


Pause = Callable[[float], Awaitable[None]]
"""Waits for so many seconds; a person's command does it so that the person sees it."""


class Limiter(Protocol):
    """Keeps calls to one endpoint of one account apart, across all processes that share a store."""

    async def wait_for_turn(
        self, account: str, endpoint: str, *, interval_seconds: float, continues: bool = False, pause: Pause
    ) -> None:
        """Returns when the call may be made; one that `continues` the call before it need not wait for that one."""

    async def note_answer(
        self, account: str, endpoint: str, *, interval_seconds: float, pause_seconds: float = 0.0
    ) -> None:
        """The call that had the turn is over. The service has counted it by now, and not when the turn was taken: so
        the interval begins here. With `pause_seconds` the service asked for that long without a further call."""
