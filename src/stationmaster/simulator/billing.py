"""The cost of an instance: GPU while it runs, disk from creation to destruction, and traffic."""

from __future__ import annotations

from dataclasses import dataclass

from stationmaster.money import ZERO, MicroDollars, cost
from stationmaster.simulator.instances import Instance

_DAY_SECONDS = 86400.0
_GIGABYTE = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceCharge:
    """One instance's cost on one UTC day, up to now for today."""

    instance_id: int
    label: str | None
    gpu_name: str
    start: float
    end: float
    gpu: MicroDollars
    disk: MicroDollars
    downloads: MicroDollars
    uploads: MicroDollars

    @property
    def total(self) -> MicroDollars:
        return MicroDollars(self.gpu + self.disk + self.downloads + self.uploads)


def charge_until(instance: Instance, now: float) -> InstanceCharge:
    """The whole cost of the instance so far, as one charge."""
    end = _billed_end(instance, now)
    return InstanceCharge(
        instance_id=instance.id,
        label=instance.order.label,
        gpu_name=instance.offer.gpu.name,
        start=instance.created_at,
        end=end,
        gpu=_gpu_cost(instance, end),
        disk=_disk_cost(instance, end),
        downloads=_traffic_cost(instance, instance.downloaded_bytes),
        uploads=_traffic_cost(instance, instance.uploaded_bytes),
    )


def charges_by_day(instance: Instance, now: float) -> list[InstanceCharge]:
    """One charge for each UTC day of the instance's life; they add up to `charge_until` to the micro-dollar."""
    whole = charge_until(instance, now)
    charges: list[InstanceCharge] = []
    start = whole.start
    while start < whole.end or not charges:
        end = min(whole.end, (start // _DAY_SECONDS + 1) * _DAY_SECONDS)
        first = not charges
        charges.append(
            InstanceCharge(
                instance_id=whole.instance_id,
                label=whole.label,
                gpu_name=whole.gpu_name,
                start=start,
                end=end,
                gpu=MicroDollars(_gpu_cost(instance, end) - _gpu_cost(instance, start)),
                disk=MicroDollars(_disk_cost(instance, end) - _disk_cost(instance, start)),
                # Traffic has no time: it is charged on the first day.
                downloads=whole.downloads if first else ZERO,
                uploads=whole.uploads if first else ZERO,
            )
        )
        start = end
    return charges


def _billed_end(instance: Instance, now: float) -> float:
    return min(now, instance.destroyed_at) if instance.destroyed_at is not None else now


def gpu_seconds(instance: Instance, now: float) -> float:
    """Seconds for which the instance's GPU was billed so far."""
    end = _billed_end(instance, now)
    return sum(period.seconds_until(end) for period in instance.billed)


def _gpu_cost(instance: Instance, moment: float) -> MicroDollars:
    return MicroDollars(sum(cost(period.usd_per_hour, period.seconds_until(moment)) for period in instance.billed))


def _disk_cost(instance: Instance, moment: float) -> MicroDollars:
    return cost(instance.disk_usd_per_hour, max(0.0, moment - instance.created_at))


def _traffic_cost(instance: Instance, transferred_bytes: int) -> MicroDollars:
    return MicroDollars(round(instance.offer.traffic_usd_per_gb * transferred_bytes / _GIGABYTE))
