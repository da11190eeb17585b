"""Notices: an epoch's end, an exit, health that turned and stayed so; nothing is said twice while it flaps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stationmaster.control.monitoring.instance_metrics import InstanceMetrics, Snapshot, summarise
from stationmaster.control.monitoring.notices import Notice, NoticeKind, Told, health_reason, new_notices

HEALTHY = InstanceMetrics(id="7", gpu_percent=50.0, label="cats")
IDLE = replace(HEALTHY, gpu_percent=3.0)
EXITED = replace(HEALTHY, status="exited", gpu_percent=None)


def told_of(*states: InstanceMetrics, every: float = 10.0, repeated: int = 1) -> list[Notice]:
    """The notices of looks at one machine; each state is another answer of the provider, seen in some looks."""
    told = Told()
    found: list[Notice] = []
    for number, state in enumerate(states):
        at = 1000.0 + number * every
        for _ in range(repeated):
            instances = (replace(state, seen_at=state.seen_at or at),)
            snapshot = Snapshot(at=at, instances=instances, summary=summarise(instances), stale=False)
            told, notices = new_notices(told, snapshot)
            found += notices
    return found


def test_the_first_look_tells_nothing() -> None:
    assert told_of(EXITED) == told_of(IDLE, IDLE) == told_of(replace(HEALTHY, epoch=3.0)) == []


def test_an_exit_is_told_at_once_and_once() -> None:
    (notice,) = told_of(HEALTHY, EXITED, EXITED, EXITED, repeated=3)
    assert (notice.kind, notice.instance, notice.at) == (NoticeKind.EXITED, "7", 1010.0)
    assert notice.sentence == "Instance 7 (cats) has exited (status exited)."


def test_health_is_told_with_its_reason_once_two_answers_in_a_row_showed_it() -> None:
    assert told_of(HEALTHY, IDLE, repeated=5) == []
    (notice,) = told_of(HEALTHY, IDLE, IDLE, IDLE, repeated=2)
    assert (notice.kind, notice.at) == (NoticeKind.HEALTH, 1020.0)
    assert notice.sentence == "Instance 7 (cats) turned yellow: its GPU is idle (3%)."


def test_flapping_is_silent_and_a_lasting_recovery_is_told() -> None:
    assert told_of(*[HEALTHY, IDLE] * 10) == []
    kinds = [notice.kind for notice in told_of(HEALTHY, IDLE, IDLE, HEALTHY, IDLE, HEALTHY, HEALTHY, HEALTHY)]
    assert kinds == [NoticeKind.HEALTH, NoticeKind.RECOVERED]


def test_a_machine_that_starts_again_may_exit_again() -> None:
    kinds = [notice.kind for notice in told_of(HEALTHY, EXITED, HEALTHY, HEALTHY, EXITED)]
    assert kinds == [NoticeKind.EXITED, NoticeKind.RECOVERED, NoticeKind.EXITED]
    assert [notice.kind for notice in told_of(HEALTHY, EXITED, HEALTHY, EXITED)] == [NoticeKind.EXITED]


def test_old_values_tell_nothing() -> None:
    old = replace(IDLE, stale=True, seen_at=1000.0)
    assert told_of(HEALTHY, old, old, old) == []


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (
            {"epoch": 1.0, "total_epochs": 3, "step": 99, "total_steps": 100, "counts_epoch": True},
            {"epoch": 2.0, "step": 1},
            "Instance 7 (cats) completed epoch 1 of 3.",
        ),
        (
            {"epoch": 3.0, "total_epochs": 3, "step": 99, "total_steps": 100, "counts_epoch": True},
            {"step": 100},
            "Instance 7 (cats) completed epoch 3 of 3.",
        ),
        ({"epoch": 0.9, "step": 1}, {"epoch": 1.1}, "Instance 7 (cats) completed epoch 1."),
    ],
)
def test_the_end_of_an_epoch_is_told(before: dict[str, float], after: dict[str, float], sentence: str) -> None:
    first = replace(HEALTHY, **before)  # type: ignore[arg-type]  # by name
    second = replace(first, **after)  # type: ignore[arg-type]
    (notice,) = told_of(first, second, second, repeated=2)
    assert (notice.kind, notice.sentence) == (NoticeKind.EPOCH, sentence)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (IDLE, "its GPU is idle (3%)"),
        (replace(HEALTHY, gpu_percent=97.4), "its GPU is over-used (97%)"),
        (replace(HEALTHY, loss=12.5), "its loss diverges (12.5)"),
        (replace(HEALTHY, loss=float("nan")), "its loss diverges (nan)"),
        (replace(HEALTHY, status="offline"), "it is offline"),
    ],
)
def test_the_reason_is_said_in_words(state: InstanceMetrics, reason: str) -> None:
    assert health_reason(state) == reason


def test_a_machine_whose_log_was_not_read_yet_was_not_looked_at_yet() -> None:
    listed_only, read = HEALTHY, replace(HEALTHY, loss=99.0, step=100, total_steps=100, epoch=3.0, total_epochs=3)
    told = Told()
    for seen_at, state, unfinished in [(1.0, listed_only, {"7"}), (1.0, read, set()), (2.0, read, set())]:
        instances = (replace(state, seen_at=seen_at),)
        snapshot = Snapshot(at=seen_at, instances=instances, summary=summarise(instances), stale=False)
        told, notices = new_notices(told, snapshot, unfinished=unfinished)
        assert notices == ()


def test_nothing_is_remembered_of_machines_that_left() -> None:
    instances = (replace(HEALTHY, seen_at=1.0),)
    told, _ = new_notices(Told(), Snapshot(at=1.0, instances=instances, summary=summarise(instances), stale=False))
    told, _ = new_notices(told, Snapshot(at=2.0, instances=(), summary=summarise(()), stale=False))
    assert told.machines == {}
