"""What this computer can offer a job: which of its GPUs fit, why others do not, and which are in use by other jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from stationmaster.model import FoundGpus, Gpu, GpuMaker, Label, Offer, Requirements
from stationmaster.money import MicroDollars, cost, format_dollars
from stationmaster.offers import HoursOn, LeftOut, NoOffer, RankedOffer, Ranking, least_vram_mib

NAME = "loopback"
NO_GPU_ID = "this-computer"
_MIB_PER_GIB = 1024
_ELSEWHERE = "rent a machine that has such a GPU, as with --provider vastai"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """What this computer has now. `holders` has the labels of the machines that hold a GPU, by the GPU's id."""

    found: FoundGpus
    holders: Mapping[str, str]
    disk_free_gib: float
    price_per_hour: MicroDollars

    def is_free(self, gpu: Gpu) -> bool:
        return gpu.id not in self.holders


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """GPUs that fit a job; `gpus` is empty if it needs none."""

    offer: Offer
    gpus: tuple[Gpu, ...]


def candidates(inventory: Inventory, want: Requirements) -> list[Candidate]:
    """What fits, best first: free GPUs before those in use, those that failed recently last.

    GPUs in use count, because a job waits for them. Several GPUs of one job are alike.
    """
    if _objection(inventory, want) is not None:
        return []
    if not want.gpus:
        return [Candidate(offer=_offer(inventory, ()), gpus=())]
    fitting = [gpu for gpu in inventory.found.gpus if _shortcoming(gpu, inventory, want) is None]
    ranked = sorted(fitting, key=lambda gpu: (not inventory.is_free(gpu), gpu.id in want.avoided_machines))
    chosen = _alike(ranked, want.gpus) if want.gpus > 1 else [(gpu,) for gpu in ranked]
    return [Candidate(offer=_offer(inventory, gpus), gpus=gpus) for gpus in chosen]


def rank_this_computer(inventory: Inventory, want: Requirements, hours_on: HoursOn) -> Ranking:
    """The offers of this computer, and why its other GPUs are left out."""
    chosen = []
    for candidate in candidates(inventory, want):
        hours = hours_on(candidate.offer.gpu)
        job_cost = cost(candidate.offer.price_per_hour, hours * 3600)
        chosen.append(RankedOffer(offer=candidate.offer, hours=hours, job_cost=job_cost))
    return Ranking(chosen=tuple(chosen), left_out=tuple(_left_out(inventory, want, fits=bool(chosen))))


def waiting_reason(inventory: Inventory, want: Requirements) -> str | None:
    """Why the job has to wait although it fits: jobs use every GPU that it could have. None if it need not wait."""
    found = candidates(inventory, want)
    if not found or any(all(inventory.is_free(gpu) for gpu in candidate.gpus) for candidate in found):
        return None
    held = {gpu.id: gpu for candidate in found for gpu in candidate.gpus if not inventory.is_free(gpu)}
    users = ", ".join(f"{gpu.name} (number {gpu.number}) by {_job(inventory.holders[gpu.id])}" for gpu in held.values())
    return f"this computer's GPUs are in use: {users}"


def why_none(inventory: Inventory, want: Requirements) -> NoOffer:
    """Why nothing on this computer fits, in numbers, and only what would help."""
    left_out = list(_left_out(inventory, want, fits=False))
    return NoOffer(
        reasons=tuple(out.why for out in left_out),
        remedies=tuple(dict.fromkeys(out.remedy for out in left_out if out.remedy)),
    )


def _left_out(inventory: Inventory, want: Requirements, *, fits: bool) -> Iterator[LeftOut]:
    objection = _objection(inventory, want)
    if objection is not None:
        yield objection.left_out(_offer(inventory, ()))
        return
    if not want.gpus:
        return
    alone = []
    for gpu in inventory.found.gpus:
        shortcoming = _shortcoming(gpu, inventory, want)
        if shortcoming is None:
            alone.append(gpu)
        else:
            yield shortcoming.left_out(_offer(inventory, (gpu,)), of=gpu)
    if alone and not fits:
        why = f"{len(alone)} x {alone[0].name} ({want.gpus} alike needed)"
        too_few = _Objection(why, f"fewer than {want.gpus} GPUs alike", "ask for fewer --gpus")
        yield too_few.left_out(_offer(inventory, (alone[0],)))


@dataclass(frozen=True, slots=True)
class _Objection:
    why: str
    kind: str
    remedy: str
    too_dear: bool = False

    def left_out(self, offer: Offer, *, of: Gpu | None = None) -> LeftOut:
        why = self.why if of is None else f"{of.name}: {self.why}"
        return LeftOut(offer=offer, why=why, kind=self.kind, too_dear=self.too_dear, remedy=self.remedy)


def _objection(inventory: Inventory, want: Requirements) -> _Objection | None:
    """A reason against the whole computer."""
    if want.max_price_per_hour is not None and inventory.price_per_hour > want.max_price_per_hour:
        price, cap = format_dollars(inventory.price_per_hour, 3), format_dollars(want.max_price_per_hour, 3)
        why = f"{price} per hour (loopback.price_per_hour) is above {cap}"
        remedy = f"submit with --max-price {price.lstrip('$')} or more"
        return _Objection(why, f"above the cap of {cap} per hour", remedy, too_dear=True)
    if inventory.disk_free_gib < want.disk_gib:
        why = f"{inventory.disk_free_gib:.1f} GiB of disk are free ({want.disk_gib:.3g} needed)"
        remedy = "free some disk space, or set STATIONMASTER_HOME to a folder on a larger disk"
        return _Objection(why, f"less than {want.disk_gib:.3g} GiB of disk", remedy)
    if want.gpus and not inventory.found.gpus and inventory.found.kept_back:
        why = f"the settings keep this computer's GPUs ({inventory.found.kept_back}) from jobs"
        return _Objection(why, why, "name a GPU in loopback.gpus, or in CUDA_VISIBLE_DEVICES if that is set")
    if want.gpus and not inventory.found.gpus:
        nothing = "no GPU was found on this computer"
        return _Objection("; ".join((nothing, *inventory.found.problems)), nothing, _ELSEWHERE)
    return None


def _shortcoming(gpu: Gpu, inventory: Inventory, want: Requirements) -> _Objection | None:
    """Why the GPU cannot have the job. While a job of ours uses it, its memory counts as free: that job ends first."""
    needed = least_vram_mib(want.vram_gib) / _MIB_PER_GIB
    if gpu.unusable is not None:
        return _Objection(gpu.unusable, gpu.unusable, _ELSEWHERE)
    if want.cuda is not None and gpu.maker is not GpuMaker.NVIDIA:
        return _Objection(f"CUDA {want.cuda:g} is needed, which is NVIDIA's", "no CUDA", _ELSEWHERE)
    if want.cuda is not None and gpu.cuda is not None and gpu.cuda < want.cuda:
        why = f"its driver supports CUDA {gpu.cuda:g} ({want.cuda:g} needed)"
        return _Objection(why, f"CUDA below {want.cuda:g}", "update the GPU's driver")
    if gpu.total_gib < needed:
        why = f"{gpu.total_gib:.1f} GiB of GPU memory ({needed:.1f} needed)"
        return _Objection(why, f"less than {needed:.1f} GiB of GPU memory", _ELSEWHERE)
    if inventory.is_free(gpu) and gpu.free_gib < needed:
        free = f"{gpu.free_gib:.1f} of {gpu.total_gib:.1f} GiB are free ({needed:.1f} needed)"
        why = f"{free}; other programs use {gpu.total_gib - gpu.free_gib:.1f}"
        return _Objection(why, f"less than {needed:.1f} GiB of GPU memory free", "end the programs that use the GPU")
    return None


def _alike(gpus: Sequence[Gpu], count: int) -> list[tuple[Gpu, ...]]:
    """The first `count` of each kind, in the order of their first ones."""
    kinds: dict[tuple[GpuMaker, str], list[Gpu]] = {}
    for gpu in gpus:
        kinds.setdefault((gpu.maker, gpu.name), []).append(gpu)
    return [tuple(kind[:count]) for kind in kinds.values() if len(kind) >= count]


def _offer(inventory: Inventory, gpus: tuple[Gpu, ...]) -> Offer:
    return Offer(
        id=",".join(gpu.id for gpu in gpus) or NO_GPU_ID,
        provider=NAME,
        price_per_hour=inventory.price_per_hour,
        gpu=gpus[0].name if gpus else None,
        gpus=len(gpus),
        vram_gib=min((gpu.total_gib for gpu in gpus), default=0.0),
        machine_id=gpus[0].id if gpus else None,
        note="; ".join(_now(inventory, gpu) for gpu in gpus) or None,
    )


def _now(inventory: Inventory, gpu: Gpu) -> str:
    holder = inventory.holders.get(gpu.id)
    free = f"number {gpu.number}, {gpu.free_gib:.1f} of {gpu.total_gib:.1f} GiB free"
    return free if holder is None else f"{free}, in use by {_job(holder)}"


def _job(label: str) -> str:
    parsed = Label.parse(label)
    return label if parsed is None else parsed.job
