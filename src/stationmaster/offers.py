"""Ranks offers: what a job requires, what the user prefers, and what the whole job would cost on each."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
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
    too_dear: bool = False  # a higher limit on the price allows it
    remedy: str = ""  # what you can change to allow it; empty if nothing, or if several things are against it


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutGroup:
    """Offers excluded for the same reason; the cheapest shows what the reason costs."""

    kind: str
    count: int
    cheapest: Offer
    too_dear: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NoOffer:
    """Why nothing can be rented for a job now, and what would help. Both are phrases without a full stop."""

    reasons: tuple[str, ...]
    remedies: tuple[str, ...] = ()

    @property
    def why(self) -> str:
        return "; ".join(self.reasons)

    @property
    def what_helps(self) -> str:
        return ", or ".join(self.remedies)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    chosen: tuple[RankedOffer, ...]
    left_out: tuple[LeftOut, ...]
    no_offer: NoOffer | None = None  # set if nothing is chosen, as far as it is known why
    invalid: int = 0  # offers that could not be considered: their price or another number is impossible

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


def why_none(ranking: Ranking, *, otherwise: str = "wait until the market has other offers") -> NoOffer:
    """Why nothing was chosen, by reason, and the changes that would allow an offer; `otherwise` always helps."""
    if ranking.chosen:
        return NoOffer(reasons=("an offer that fits has appeared in the meantime",), remedies=("try again",))
    invalid = (f"{ranking.invalid} × without a valid price",) if ranking.invalid else ()
    if not ranking.left_out:
        return NoOffer(reasons=invalid or ("nothing is offered now",), remedies=(otherwise,))
    groups = ranking.groups()
    reasons = tuple(
        f"{group.count} × {group.kind} (from {format_dollars(group.cheapest.price_per_hour, 3)} per hour)"
        for group in groups
    )
    cheapest_first = sorted(ranking.left_out, key=lambda out: out.offer.price_per_hour)
    helping = {out.kind: out.remedy for out in reversed(cheapest_first) if out.remedy}
    remedies = [helping[group.kind] for group in groups if group.kind in helping]
    return NoOffer(reasons=(*reasons, *invalid), remedies=(*dict.fromkeys(remedies), otherwise))


def rank(
    candidates: Iterable[Candidate],
    want: Requirements,
    preferences: Preferences,
    hours_on: HoursOn,
    *,
    section: str = "vastai",
) -> Ranking:
    """Rank the suitable offers: preferred GPU, preferred region, then the lowest cost of the whole job.

    For work without a GPU, GPU preferences do not count. `section` of the settings holds the preferences.
    """
    chosen: list[RankedOffer] = []
    left_out: list[LeftOut] = []
    for candidate in candidates:
        hours = hours_on(candidate.offer.gpu)
        offer = _with_traffic(candidate, want, hours)
        objections = _objections(candidate, offer, want, preferences, hours)
        if objections:
            left_out.append(_left_out(offer, objections, section))
        else:
            chosen.append(RankedOffer(offer=offer, hours=hours, job_cost=cost(offer.price_per_hour, hours * 3600)))
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
    remedy: str = ""  # with {section} for the settings' section


def _left_out(offer: Offer, objections: Sequence[_Objection], section: str) -> LeftOut:
    """The first objection counts; only what meets all of them would help."""
    first = objections[0]
    remedy = first.remedy.format(section=section) if len(objections) == 1 else ""
    return LeftOut(offer=offer, why=first.why, kind=first.kind or first.why, too_dear=first.too_dear, remedy=remedy)


def _objections(
    candidate: Candidate, offer: Offer, want: Requirements, preferences: Preferences, hours: float
) -> list[_Objection]:
    """Every reason against an offer, its price last. Providers do not always apply the filters they are given."""
    return [
        *_unwanted(candidate, offer, want, preferences),
        *_shortcomings(candidate, want, preferences, hours),
        *_over_price(offer, want, preferences),
    ]


def _unwanted(candidate: Candidate, offer: Offer, want: Requirements, preferences: Preferences) -> Iterator[_Objection]:
    if offer.machine_id is not None and offer.machine_id in want.avoided_machines:
        yield _Objection("this host failed recently")
    if offer.machine_id is not None and offer.machine_id in preferences.blocked_machines:
        remedy = f"remove {offer.machine_id} from {{section}}.blocked_machines"
        yield _Objection(f"machine {offer.machine_id} is blocked", remedy=remedy)
    if blocked := _first_mentioned(offer.region, preferences.blocked_regions):
        yield _Objection(f"{blocked} is blocked", remedy=f"remove {blocked} from {{section}}.blocked_regions")
    if preferences.datacenter_only and not candidate.datacenter:
        yield _Objection("not in a data centre", remedy="set {section}.datacenter_only to false")
    if not candidate.rentable:
        yield _Objection("already rented")
    if preferences.verified_only and not candidate.verified:
        yield _Objection("not verified by the provider", remedy="set {section}.verified_only to false")


def _shortcomings(
    candidate: Candidate, want: Requirements, preferences: Preferences, hours: float
) -> Iterator[_Objection]:
    offer = candidate.offer
    contract_hours = hours * CONTRACT_SHARE
    if offer.gpus < want.gpus:
        yield _Objection(f"{offer.gpus} GPU ({want.gpus} needed)", f"fewer than {want.gpus} GPU")
    if want.gpus:
        yield from _weak_gpu(candidate, want, preferences)
    if _below(candidate.disk_gib, want.disk_gib):
        why = f"{candidate.disk_gib:.0f} GiB of disk ({want.disk_gib:.3g} needed)"
        yield _Objection(why, f"less than {want.disk_gib:.3g} GiB of disk")
    if _below(candidate.direct_ports, 1):
        yield _Objection("no direct port for SSH")
    if _below(candidate.contract_hours, contract_hours):
        why = f"available for {candidate.contract_hours:.0f} h ({contract_hours:.0f} needed)"
        yield _Objection(why, "not available long enough")
    if offer.reliability is not None and offer.reliability < preferences.min_reliability:
        below = f"below {preferences.min_reliability:g}"
        remedy = f"lower {{section}}.min_reliability to {math.floor(offer.reliability * 1000) / 1000:g}"
        yield _Objection(f"reliability {offer.reliability:.3f} is {below}", f"reliability {below}", remedy=remedy)


def _weak_gpu(candidate: Candidate, want: Requirements, preferences: Preferences) -> Iterator[_Objection]:
    """What a setting asks for beyond the job's needs can be given up."""
    vram_gib = max(want.vram_gib, preferences.min_vram_gb)
    have_mib = candidate.offer.vram_gib * 1024
    if have_mib < least_vram_mib(vram_gib):
        why = f"{candidate.offer.vram_gib:.0f} GiB of GPU memory ({vram_gib:g} needed)"
        enough = have_mib >= least_vram_mib(want.vram_gib)
        remedy = f"lower {{section}}.min_vram_gb to {candidate.offer.vram_gib:.0f}" if enough else ""
        yield _Objection(why, f"less than {vram_gib:g} GiB of GPU memory", remedy=remedy)
    cuda = least_cuda(want, preferences)
    if candidate.cuda is not None and candidate.cuda < cuda:
        remedy = f"lower {{section}}.min_cuda to {candidate.cuda:g}" if candidate.cuda >= (want.cuda or 0.0) else ""
        why = f"CUDA {candidate.cuda:g} is older than {cuda:g}"
        yield _Objection(why, f"CUDA older than {cuda:g}", remedy=remedy)


def _over_price(offer: Offer, want: Requirements, preferences: Preferences) -> Iterator[_Objection]:
    cap, price = price_cap(want, preferences), offer.price_per_hour
    if price <= cap:
        return
    enough = f"{math.ceil(price / 1000) / 1000:.3f}"  # never below the price
    remedies = []
    if want.max_price_per_hour is not None and price > want.max_price_per_hour:
        remedies.append(f"submit with --max-price {enough} or more")
    if price > preferences.max_bid_per_hour:
        remedies.append(f"raise {{section}}.max_bid_per_hour to {enough} or more")
    above = f"above the cap of {format_dollars(cap, 3)}"
    yield _Objection(
        f"{format_dollars(price, 3)} per hour is {above}",
        f"{above} per hour",
        too_dear=True,
        remedy=" and ".join(remedies),
    )


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
