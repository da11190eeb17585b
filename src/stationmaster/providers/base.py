"""The promise that every provider of machines keeps."""

from __future__ import annotations

from typing import Protocol

from stationmaster.model import Listing, Machine, Offer, Requirements


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
