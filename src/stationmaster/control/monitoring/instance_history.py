"""Stores what the monitor shows, as series of each machine: a block a minute, not one for each look."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stationmaster.control.monitoring.instance_metrics import InstanceMetrics, Snapshot
from stationmaster.errors import StoreError
from stationmaster.series.blocks import Block, block_of
from stationmaster.series.schema import TABLES
from stationmaster.series.table import table_of

_TABLE = "InstanceSample"
_PROVIDER = "vastai"
_BLOCK_SECONDS = 60.0
_ATTEMPT = 1  # a machine without a job has no attempts

StoreBlocks = Callable[[str, Sequence[Block]], bool]
"""Stores blocks under a subject; False once the subject has reached its size limit."""


class InstanceHistory:
    """Collects the looks of about a minute and stores them; a store that fails costs a warning, never a look."""

    def __init__(self, store_blocks: StoreBlocks, *, warn: Callable[[str], None]) -> None:
        self._store_blocks = store_blocks
        self._warn = warn
        self._rows: dict[str, list[dict[str, float | int | None]]] = {}
        self._since: float | None = None
        self._full: set[str] = set()
        self._last: dict[str, float] = {}

    def add(self, snapshot: Snapshot) -> None:
        """Add one look; machines of which the provider has said nothing new add nothing."""
        for instance in snapshot.instances:
            if not instance.stale and instance.seen_at and self._last.get(instance.id) != instance.seen_at:
                self._rows.setdefault(instance.id, []).append(_row(instance))
        self._last = {instance.id: instance.seen_at for instance in snapshot.instances}
        if self._since is None:
            self._since = snapshot.at
        elif not 0 <= snapshot.at - self._since < _BLOCK_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Store what has not been stored yet."""
        rows, self._rows, self._since = self._rows, {}, None
        for instance_id, own in rows.items():
            columns = {column: [row.get(column) for row in own] for column in TABLES[_TABLE]}
            block = block_of(table_of(_TABLE, columns), attempt=_ATTEMPT)
            try:
                stored = self._store_blocks(f"{_PROVIDER}/{instance_id}", [block])
            except StoreError as problem:
                self._warn(f"the values of instance {instance_id} were not stored: {problem}")
                continue
            if not stored and instance_id not in self._full:
                self._full.add(instance_id)
                self._warn(f"instance {instance_id} has reached metrics.cap_bytes; its values are no longer stored")


def _row(instance: InstanceMetrics) -> dict[str, float | int | None]:
    return {
        "id": round(instance.seen_at * 1000),
        "timestamp": instance.seen_at,
        "gpu_percent": instance.gpu_percent,
        "gpu_temperature_c": instance.gpu_celsius,
        "memory_percent": instance.memory_percent,
        "cost_per_hour_usd": instance.cost_per_hour / 1_000_000,
        "total_cost_usd": instance.total_cost / 1_000_000,
        "training_step": instance.step,
        "training_epoch": instance.epoch,
        "training_loss": instance.loss,
        "steps_per_second": instance.steps_per_second,
    }
