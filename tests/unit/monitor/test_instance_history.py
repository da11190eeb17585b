"""What the monitor shows is stored in blocks of about a minute, and a failing store never ends a look."""

from __future__ import annotations

from collections.abc import Sequence

from stationmaster.control.monitoring.instance_history import InstanceHistory
from stationmaster.control.monitoring.instance_metrics import InstanceMetrics, Snapshot, summarise
from stationmaster.errors import StoreError
from stationmaster.money import MicroDollars
from stationmaster.series.blocks import Block


class Kept:
    """A store in memory; `limit` blocks fit, and `broken` ones fail."""

    def __init__(self, *, limit: int = 100, broken: bool = False) -> None:
        self.blocks: list[tuple[str, Block]] = []
        self.warnings: list[str] = []
        self._limit, self._broken = limit, broken

    def __call__(self, subject: str, blocks: Sequence[Block]) -> bool:
        if self._broken:
            raise StoreError("the disk is gone")
        if len(self.blocks) >= self._limit:
            return False
        self.blocks += [(subject, block) for block in blocks]
        return True

    def history(self) -> InstanceHistory:
        return InstanceHistory(self, warn=self.warnings.append)


def look(at: float, *instances: InstanceMetrics) -> Snapshot:
    return Snapshot(at=at, instances=instances, summary=summarise(instances), stale=False)


def machine(at: float, **fields: object) -> InstanceMetrics:
    values = {"id": "7", "gpu_percent": 90.0, "cost_per_hour": MicroDollars(500_000), "seen_at": at, **fields}
    return InstanceMetrics(**values)  # type: ignore[arg-type]  # by name


def test_looks_of_a_minute_are_one_block() -> None:
    kept = Kept()
    history = kept.history()
    for second in range(121):
        history.add(look(1000.0 + second, machine(1000.0 + second, step=second, loss=0.5)))
    history.flush()
    assert [block.row_count for _, block in kept.blocks] == [61, 60]
    assert {subject for subject, _ in kept.blocks} == {"vastai/7"}
    first = kept.blocks[0][1].table()
    assert first.values("training_step")[:3] == [0, 1, 2]
    assert first.values("gpu_percent")[0] == 90.0
    assert first.values("cost_per_hour_usd")[0] == 0.5
    assert first.values("timestamp")[-1] == 1060.0


def test_a_machine_that_did_not_answer_adds_nothing() -> None:
    kept = Kept()
    history = kept.history()
    history.add(look(1000.0, machine(900.0, stale=True), InstanceMetrics(id="8", status="unknown", stale=True)))
    history.flush()
    assert kept.blocks == []


def test_a_clock_that_goes_back_stores_what_there_is() -> None:
    kept = Kept()
    history = kept.history()
    history.add(look(1000.0, machine(1000.0)))
    history.add(look(500.0, machine(500.0)))
    assert [block.row_count for _, block in kept.blocks] == [2]


def test_a_broken_store_is_a_warning() -> None:
    kept = Kept(broken=True)
    history = kept.history()
    history.add(look(1000.0, machine(1000.0)))
    history.flush()
    assert kept.warnings == ["the values of instance 7 were not stored: the disk is gone"]


def test_the_limit_is_told_once() -> None:
    kept = Kept(limit=1)
    history = kept.history()
    for at in (1000.0, 2000.0, 3000.0):
        history.add(look(at, machine(at)))
        history.flush()
    assert len(kept.blocks) == 1
    assert kept.warnings == ["instance 7 has reached metrics.cap_bytes; its values are no longer stored"]
