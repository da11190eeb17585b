"""Why a provider has no offer for a job, for every provider."""

from __future__ import annotations

from contextlib import suppress

from stationmaster.errors import ProviderError
from stationmaster.model import Requirements
from stationmaster.money import format_dollars
from stationmaster.offers import NoOffer
from stationmaster.providers.base import ExplainsNoOffer, Provider


async def why_no_offer(provider: Provider, want: Requirements) -> NoOffer:
    """The provider's own explanation; without one, or if the provider does not answer, what the job needs."""
    if isinstance(provider, ExplainsNoOffer):
        with suppress(ProviderError):
            return await provider.why_no_offer(want)
    reason = f"the job needs {needs_in_words(want)}"
    return NoOffer(reasons=(reason,), remedies=("use a provider that has such a machine (--provider)",))


def needs_in_words(want: Requirements) -> str:
    """What a machine must have, as a phrase.

    >>> needs_in_words(Requirements(gpus=1, vram_gib=24.0, disk_gib=40.0))
    '1 GPU with 24 GiB of memory, 40 GiB of disk'
    """
    memory = f" with {want.vram_gib:g} GiB of memory" if want.vram_gib else ""
    gpus = f"{want.gpus} GPU{'s' if want.gpus > 1 else ''}{memory}" if want.gpus else "no GPU"
    needs = [gpus, f"{want.disk_gib:.3g} GiB of disk"]
    if want.max_price_per_hour is not None:
        needs.append(f"a price of at most {format_dollars(want.max_price_per_hour, 3)} per hour")
    return ", ".join(needs)
