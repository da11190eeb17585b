"""Ranks offers: what a job requires, what the user prefers, and what the whole job would cost on each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from stationmaster.model import Offer, Requirements
from stationmaster.money import ZERO, MicroDollars, cost, format_dollars

HoursOn = Callable[[str | None], float]
"""Expected hours of the whole job on a GPU, by its name."""
CONTRACT_SHARE = 1.5
"""The host must promise to stay for this many times the job's hours."""

# A "24 GB" card shows 24564 MB, and 23028 with error correction on; a "48 GB" one 46068.
_NOMINAL_MIB = 950


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An offer with the facts that decide about it; None: unknown. Its price does not include traffic yet."""

    offer: Offer
    rentable: bool = True
    verified: bool = True
    datacenter: bool = False
    disk_gib: float | None = None
    direct_ports: int | None = None
    contract_hours: float | None = None
    cuda: float | None = None
    traffic_per_gib: MicroDollars = ZERO


class Preferences(Protocol):
    """Which machines a user wants in general. Lists are most preferred first; GPUs and regions not in them come last.

    A region is a country's code or any word of a place; a GPU is any word of its name. The settings have this shape.
    """

    @property
    def preferred_gpus(self) -> tuple[str, ...]: ...

    @property
    def preferred_regions(self) -> tuple[str, ...]: ...

    @property
    def blocked_regions(self) -> tuple[str, ...]: ...

    @property
    def blocked_machines(self) -> tuple[str, ...]: ...

    @property
    def datacenter_only(self) -> bool: ...

    @property
    def verified_only(self) -> bool: ...

    @property
    def max_bid_per_hour(self) -> MicroDollars: ...

    @property
    def min_vram_gb(self) -> float: ...

    @property
    def min_reliability(self) -> float: ...

    @property
    def min_cuda(self) -> float: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedOffer:
    """An offer with traffic included in its price, and the hours and cost of the job on it."""

    offer: Offer
    hours: float
    job_cost: MicroDollars


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """An excluded offer. `why` is about this offer, `kind` about all that were excluded for the same reason."""

    offer: Offer
    why: str
    kind: str
    too_dear: bool = False  # a higher limit on the price may allow it


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutGroup:
    """Offers excluded for the same reason; the cheapest shows what the reason costs."""

    kind: str
    count: int
    cheapest: Offer
    too_dear: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    chosen: tuple[RankedOffer, ...]
    left_out: tuple[LeftOut, ...]

    def groups(self) -> tuple[LeftOutGroup, ...]:
        """Excluded offers by reason, the most frequent first."""
        by_kind: dict[str, list[LeftOut]] = {}
        for out in self.left_out:
            by_kind.setdefault(out.kind, []).append(out)
        groups = [
            LeftOutGroup(
                kind=kind,
                count=len(left),
                cheapest=min((out.offer for out in left), key=lambda offer: offer.price_per_hour),
                too_dear=left[0].too_dear,
            )
            for kind, left in by_kind.items()
        ]
        return tuple(sorted(groups, key=lambda group: (-group.count, group.kind)))


def rank(candidates: Iterable[Candidate], want: Requirements, preferences: Preferences, hours_on: HoursOn) -> Ranking:
    """Rank the suitable offers: preferred GPU, preferred region, then the lowest cost of the whole job.

    For work without a GPU, GPU preferences do not count.
    """
    chosen: list[RankedOffer] = []
    left_out: list[LeftOut] = []
    for candidate in candidates:
        hours = hours_on(candidate.offer.gpu)
        offer = _with_traffic(candidate, want, hours)
        objection = _objection(candidate, offer, want, preferences, hours)
        if objection is None:
            chosen.append(RankedOffer(offer=offer, hours=hours, job_cost=cost(offer.price_per_hour, hours * 3600)))
        else:
            kind = objection.kind or objection.why
            left_out.append(LeftOut(offer=offer, why=objection.why, kind=kind, too_dear=objection.too_dear))
    return Ranking(
        chosen=tuple(sorted(chosen, key=lambda one: _place(one, want, preferences))), left_out=tuple(left_out)
    )


def least_vram_mib(vram_gib: float) -> float:
    """The least memory that a card sold with `vram_gib` reports, in MiB.

    >>> least_vram_mib(24) <= 23028, least_vram_mib(24) > 16376
    (True, True)
    """
    return vram_gib * _NOMINAL_MIB


def sold_vram_gib(gib: float) -> float:
    """The memory that a card must be sold with to report at least `gib`.

    >>> round(least_vram_mib(sold_vram_gib(30.0)) / 1024, 6)
    30.0
    """
    return gib * 1024 / _NOMINAL_MIB


def least_cuda(want: Requirements, preferences: Preferences) -> float:
    """The CUDA version that a driver must support: the higher of the job's and the setting's."""
    return max(preferences.min_cuda, want.cuda or 0.0)


def price_cap(want: Requirements, preferences: Preferences) -> MicroDollars:
    """The highest price per hour, everything included."""
    cap = preferences.max_bid_per_hour
    return cap if want.max_price_per_hour is None else min(cap, want.max_price_per_hour)


def mentions(text: str | None, phrase: str) -> bool:
    """Whether `text` contains the words of `phrase`, ignoring case and separators.

    >>> mentions("RTX 4090", "rtx_4090"), mentions("Quebec, CA", "CA"), mentions("RTX 4090D", "4090")
    (True, True, False)
    """
    return f" {_words(phrase)} " in f" {_words(text or '')} "


def _with_traffic(candidate: Candidate, want: Requirements, hours: float) -> Offer:
    traffic = candidate.traffic_per_gib * want.traffic_gib / max(hours, 0.01)
    return replace(candidate.offer, price_per_hour=MicroDollars(candidate.offer.price_per_hour + round(traffic)))


@dataclass(frozen=True, slots=True)
class _Objection:
    why: str
    kind: str = ""  # set if `why` has details of this offer
    too_dear: bool = False


def _objection(
    candidate: Candidate, offer: Offer, want: Requirements, preferences: Preferences, hours: float
) -> _Objection | None:
    """The first reason against an offer. Providers do not always apply the filters they are given."""
    cap = price_cap(want, preferences)
    if offer.machine_id is not None and offer.machine_id in want.avoided_machines:
        return _Objection("this host failed recently")
    if offer.machine_id is not None and offer.machine_id in preferences.blocked_machines:
        return _Objection(f"machine {offer.machine_id} is blocked")
    if blocked := _first_mentioned(offer.region, preferences.blocked_regions):
        return _Objection(f"{blocked} is blocked")
    if preferences.datacenter_only and not candidate.datacenter:
        return _Objection("not in a data centre")
    if not candidate.rentable:
        return _Objection("already rented")
    if preferences.verified_only and not candidate.verified:
        return _Objection("not verified by the provider")
    if offer.price_per_hour > cap:
        above = f"above the cap of {format_dollars(cap, 3)}"
        why = f"{format_dollars(offer.price_per_hour, 3)} per hour is {above}"
        return _Objection(why, f"{above} per hour", too_dear=True)
    return _shortcoming(candidate, want, preferences, hours)


def _shortcoming(candidate: Candidate, want: Requirements, preferences: Preferences, hours: float) -> _Objection | None:
    offer = candidate.offer
    vram_gib = max(want.vram_gib, preferences.min_vram_gb) if want.gpus else 0.0
    contract_hours = hours * CONTRACT_SHARE
    if offer.gpus < want.gpus:
        return _Objection(f"{offer.gpus} GPU ({want.gpus} needed)", f"fewer than {want.gpus} GPU")
    if offer.vram_gib * 1024 < least_vram_mib(vram_gib):
        why = f"{offer.vram_gib:.0f} GiB of GPU memory ({vram_gib:g} needed)"
        return _Objection(why, f"less than {vram_gib:g} GiB of GPU memory")
    if _below(candidate.disk_gib, want.disk_gib):
        why = f"{candidate.disk_gib:.0f} GiB of disk ({want.disk_gib:.3g} needed)"
        return _Objection(why, f"less than {want.disk_gib:.3g} GiB of disk")
    if _below(candidate.direct_ports, 1):
        return _Objection("no direct port for SSH")
    if _below(candidate.contract_hours, contract_hours):
        why = f"available for {candidate.contract_hours:.0f} h ({contract_hours:.0f} needed)"
        return _Objection(why, "not available long enough")
    if _below(offer.reliability, preferences.min_reliability):
        below = f"below {preferences.min_reliability:g}"
        return _Objection(f"reliability {offer.reliability:.3f} is {below}", f"reliability {below}")
    cuda = least_cuda(want, preferences)
    if want.gpus and _below(candidate.cuda, cuda):
        return _Objection(f"CUDA {candidate.cuda:g} is older than {cuda:g}", f"CUDA older than {cuda:g}")
    return None


def _below(value: float | None, least: float) -> bool:
    return value is not None and value < least


def _place(ranked: RankedOffer, want: Requirements, preferences: Preferences) -> tuple[int, int, int, float, str]:
    offer = ranked.offer
    return (
        _position(offer.gpu, preferences.preferred_gpus if want.gpus else ()),
        _position(offer.region, preferences.preferred_regions),
        ranked.job_cost,
        -(offer.reliability or 0.0),
        offer.id,
    )


def _position(text: str | None, wanted: Sequence[str]) -> int:
    return next((index for index, phrase in enumerate(wanted) if mentions(text, phrase)), len(wanted))


def _first_mentioned(text: str | None, phrases: Iterable[str]) -> str | None:
    return next((phrase for phrase in phrases if mentions(text, phrase)), None)


def _words(text: str) -> str:
    return re.sub(r"[^A-Z0-9]+", " ", text.upper()).strip()
