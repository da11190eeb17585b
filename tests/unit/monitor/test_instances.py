"""A rented machine as a person watches it: health, progress, time left, and all machines together."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.control.monitoring.instance_metrics import InstanceHealth, InstanceMetrics, summarise
from stationmaster.money import MicroDollars

MACHINE = InstanceMetrics(id="1", gpu_percent=60.0, loss=2.0)


@pytest.mark.parametrize("gpu_percent", [10.0, 95.0, 0.0, 100.0, 3.2, 96.0])
def test_an_idle_or_overused_gpu_is_a_warning_and_so_are_the_edges(gpu_percent: float) -> None:
    assert replace(MACHINE, gpu_percent=gpu_percent).health_status() is InstanceHealth.WARNING


@pytest.mark.parametrize("gpu_percent", [10.1, 50.0, 94.9])
def test_a_busy_gpu_with_a_sane_loss_is_healthy(gpu_percent: float) -> None:
    assert replace(MACHINE, gpu_percent=gpu_percent).health_status() is InstanceHealth.HEALTHY
    assert replace(MACHINE, gpu_percent=gpu_percent, loss=None).health_status() is InstanceHealth.HEALTHY


@pytest.mark.parametrize("loss", [10.0, 11.0, float("inf"), float("nan")])
def test_a_diverging_loss_is_a_warning_also_when_the_gpu_is_unknown(loss: float) -> None:
    assert replace(MACHINE, loss=loss).health_status() is InstanceHealth.WARNING
    assert replace(MACHINE, loss=loss, gpu_percent=None).health_status() is InstanceHealth.WARNING


@pytest.mark.parametrize(
    ("status", "health"), [("exited", "error"), ("offline", "error"), ("loading", "neutral"), ("created", "neutral")]
)
def test_only_a_running_machine_is_judged_by_its_readings(status: str, health: str) -> None:
    assert replace(MACHINE, status=status, gpu_percent=0.0).health_status() == health


def test_a_running_machine_of_which_nobody_says_anything_is_neither_good_nor_bad() -> None:
    assert InstanceMetrics(id="1").health_status() is InstanceHealth.NEUTRAL


@pytest.mark.parametrize(
    ("runtime", "step", "total", "shown"),
    [(2700, 500, 1000, "45m"), (7500, 1, 2, "2h5m"), (4 * 3600, 250, 1000, "12h"), (60, 0, 10, "N/A"), (9, 9, 9, "0s")],
)
def test_the_time_left_is_remaining_steps_at_the_pace_since_the_start(
    runtime: float, step: int, total: int, shown: str
) -> None:
    assert replace(MACHINE, runtime_seconds=runtime, step=step, total_steps=total).eta() == shown


def test_what_the_trainer_tells_of_the_time_left_is_believed_first() -> None:
    machine = replace(MACHINE, runtime_seconds=9e9, step=1, total_steps=2, told_eta_seconds=45.0)
    assert machine.eta() == "45s"


def test_steps_that_begin_anew_with_every_epoch_are_counted_over_all_epochs() -> None:
    machine = replace(MACHINE, step=50, total_steps=100, epoch=2.0, total_epochs=3, counts_epoch=True)
    assert machine.progress_percentage() == 50.0
    assert replace(machine, runtime_seconds=600.0, told_eta_seconds=1.0).eta() == "10m"
    assert replace(machine, steps_per_second=0.5, runtime_seconds=600.0).eta() == "5m"


amounts = st.integers(0, 10**9).map(MicroDollars)
machines = st.builds(
    InstanceMetrics,
    id=st.text("0123456789", min_size=1),
    status=st.sampled_from(["running", "loading", "exited", "created", "unknown"]),
    cost_per_hour=amounts,
    total_cost=amounts,
    gpu_percent=st.none() | st.floats(0, 100),
    memory_percent=st.none() | st.floats(0, 100),
    step=st.none() | st.integers(0, 10**6),
    total_steps=st.none() | st.integers(0, 10**6),
    runtime_seconds=st.none() | st.floats(0, 1e7),
)


@given(st.lists(machines, max_size=8))
def test_sums_and_averages_hold_for_any_machines(instances: list[InstanceMetrics]) -> None:
    summary = summarise(instances)
    assert summary.total_cost == sum(each.total_cost for each in instances)
    assert summary.cost_per_hour == sum(each.cost_per_hour for each in instances)
    assert summary.running + summary.errors <= summary.instances == len(instances)
    amounts = [amount for _, amount in summary.trajectory]
    assert amounts == sorted(amounts)
    assert amounts[0] == summary.total_cost + summary.cost_per_hour
    if summary.average_gpu_percent is not None:
        assert -1e-9 <= summary.average_gpu_percent <= 100 + 1e-9


@given(machines)
def test_progress_and_time_left_are_never_nonsense(machine: InstanceMetrics) -> None:
    progress, eta = machine.progress_percentage(), machine.eta_seconds()
    assert progress is None or 0 <= progress <= 100
    assert eta is None or eta >= 0
