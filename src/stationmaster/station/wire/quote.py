"""What a training is expected to take: hours, money and GPU memory."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from stationmaster.model import Quote
from stationmaster.station.wire.document import Document, Usd


class RangeDocument(Document):
    """An expected figure, and the range that it should lie in."""

    low: float
    """The lower end."""
    expected: float
    """The expected figure."""
    high: float
    """The upper end."""


class UsdRangeDocument(Document):
    """An expected amount, and the range that it should lie in."""

    low: Usd
    """The lower end."""
    expected: Usd
    """The expected amount."""
    high: Usd
    """The upper end."""


class QuoteDocument(Document):
    """What a training is expected to take."""

    hours: RangeDocument
    """How long it is expected to take."""
    price_per_hour_usd: Usd
    """What the machine costs per hour."""
    cost_usd: UsdRangeDocument
    """What the job is expected to cost."""
    gpu: str | None = Field(examples=["RTX 4090"])
    """The GPU that the hours are for."""
    disk_gib: float
    """Disk space that is included in the price."""
    traffic_gib: float
    """Traffic that is included in the price."""
    past_runs: int
    """How many earlier runs corrected the hours."""
    gpu_gib: float | None
    """The memory of the GPU."""
    gpu_memory_gib: RangeDocument | None
    """The peak that is expected of one GPU's memory; null if it is not predicted."""
    gpu_memory_past_runs: int
    """How many earlier runs the prediction rests on."""
    gpu_memory_basis: str
    """What the prediction rests on, or why there is none."""
    reference_hours: float | None = None
    """The hours on an RTX 4090, which offers with other GPUs are compared by."""
    fixed_hours: float = 0.0
    """The part of the hours that is the same on every GPU."""
    min_vram_gib: float | None = None
    """The memory that a GPU must be sold with; null: what the recipe needs."""
    offer: str | None = Field(default=None, examples=["30007012"])
    """The offer that it is for, which the job tries first; null: any that fits."""

    @classmethod
    def of(cls, quote: Quote) -> Self:
        memory = None
        if quote.memory_expected_gib is not None:
            memory = RangeDocument(
                low=quote.memory_low_gib or 0.0,
                expected=quote.memory_expected_gib,
                high=quote.memory_high_gib or 0.0,
            )
        return cls(
            hours=RangeDocument(low=quote.hours_low, expected=quote.hours_expected, high=quote.hours_high),
            price_per_hour_usd=quote.price_per_hour,
            cost_usd=UsdRangeDocument(low=quote.cost_low, expected=quote.cost_expected, high=quote.cost_high),
            gpu=quote.gpu,
            disk_gib=quote.disk_gib,
            traffic_gib=quote.traffic_gib,
            past_runs=quote.past_runs,
            gpu_gib=quote.gpu_gib,
            gpu_memory_gib=memory,
            gpu_memory_past_runs=quote.memory_runs,
            gpu_memory_basis=quote.memory_basis,
            reference_hours=quote.reference_hours,
            fixed_hours=quote.fixed_hours,
            min_vram_gib=quote.min_vram_gib,
            offer=quote.offer,
        )

    def value(self) -> Quote:
        memory = self.gpu_memory_gib
        return Quote(
            hours_low=self.hours.low,
            hours_expected=self.hours.expected,
            hours_high=self.hours.high,
            price_per_hour=self.price_per_hour_usd,
            cost_low=self.cost_usd.low,
            cost_expected=self.cost_usd.expected,
            cost_high=self.cost_usd.high,
            gpu=self.gpu,
            past_runs=self.past_runs,
            reference_hours=self.reference_hours,
            fixed_hours=self.fixed_hours,
            disk_gib=self.disk_gib,
            traffic_gib=self.traffic_gib,
            memory_low_gib=None if memory is None else memory.low,
            memory_expected_gib=None if memory is None else memory.expected,
            memory_high_gib=None if memory is None else memory.high,
            memory_runs=self.gpu_memory_past_runs,
            memory_basis=self.gpu_memory_basis,
            gpu_gib=self.gpu_gib,
            min_vram_gib=self.min_vram_gib,
            offer=self.offer,
        )
