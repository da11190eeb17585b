"""The named series of a run, drawn and summarised."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.cli.metric_lines import metric_lines
from stationmaster.series.buckets import Points
from stationmaster.series.run_series import RunSeries
from stationmaster.series.sparkline import BLOCKS, PLAIN, sparkline
from stationmaster.series.summary import summarise_run
from stationmaster.series.table import Table, table_of

STEPS = 1000


def run() -> RunSeries:
    """A run of 1,000 steps, one a second, with a spike of the loss at step 500 and two GPUs sampled every 5 seconds."""
    count = [*range(1, STEPS + 1)]
    loss = [50.0 if step == 500 else 1 / step for step in count]
    times = [*range(0, STEPS, 5)]
    tables = [
        table_of(
            "StepMetric",
            {
                "id": count,
                "step": count,
                "timestamp": [1000.0 + step for step in count],
                "loss": loss,
                "step_time_seconds": [3.0 if step % 100 < 6 else 1.0 for step in count],
                "gradient_norm": [None] * STEPS,
            },
        ),
        table_of(
            "StepValue",
            {"id": [1, 2], "step": [1, 2], "timestamp": [1001.0, 1002.0], "name": ["b", "a"], "value": [5.0, 6.0]},
        ),
        table_of(
            "GpuSample",
            {
                "id": [*range(2 * len(times))],
                "timestamp": [1000.0 + time for time in times for _ in (0, 1)],
                "gpu_index": [index for _ in times for index in (0, 1)],
                "name": ["RTX 4090"] * 2 * len(times),
                "memory_used_gb": [20.0 + index for _ in times for index in (0, 1)],
                "memory_total_gb": [24.0] * 2 * len(times),
                "utilization_percent": [90.0] * 2 * len(times),
            },
        ),
        table_of(
            "TrainingEvent",
            {"id": [1, 2, 3], "timestamp": [1.0, 2.0, 3.0], "event_type": ["save_start", "oom_error", "save_start"]},
        ),
    ]
    return RunSeries({table.name: table for table in tables})


def test_names_are_those_of_columns_values_and_gpus_that_were_measured() -> None:
    assert run().names() == [
        "loss", "step_time_seconds", "a", "b", "gpu0.memory_used_gb", "gpu0.memory_total_gb",
        "gpu0.utilization_percent", "gpu1.memory_used_gb", "gpu1.memory_total_gb", "gpu1.utilization_percent",
    ]  # fmt: skip


def test_a_spike_of_one_step_is_drawn_and_zooming_in_ends_at_the_exact_values() -> None:
    (wide,) = run().drawn(["loss"], columns=20)
    assert 50.0 in wide.points.y
    assert len(wide.points.x) <= 40
    assert (wide.axis, wide.count, wide.points.exact) == ("step", STEPS, False)
    (near,) = run().drawn(["loss"], columns=20, start=490, end=510)
    assert near.points.x == [float(step) for step in range(490, 511)]
    assert (near.count, near.points.exact) == (21, True)


def test_what_a_machine_measured_is_drawn_over_the_time_of_the_steps() -> None:
    (card,) = run().drawn(["gpu1.memory_used_gb"], columns=100, start=100, end=200)
    assert card.axis == "time"
    assert (card.points.x[0], card.points.x[-1]) == (1100.0, 1200.0)


def test_steps_are_drawn_over_time_if_asked() -> None:
    (loss,) = run().drawn(["loss"], axis="time", columns=5000, start=1010.0, end=1012.0)
    assert loss.points.x == [1010.0, 1011.0, 1012.0]


def test_a_name_that_the_run_does_not_have_is_left_out() -> None:
    assert run().drawn(["nothing"], columns=10) == []


def test_an_unknown_time_is_not_drawn() -> None:
    table = table_of("StepMetric", {"id": [1, 2], "step": [1, 2], "timestamp": [0.0, 0.0], "loss": [1.0, 2.0]})
    (loss,) = RunSeries({"StepMetric": table}).drawn(["loss"], axis="time", columns=10)
    assert loss.points.x == []


def test_the_same_name_twice_gets_its_table_in_front() -> None:
    value = table_of("StepValue", {"id": [1], "step": [1], "timestamp": [1.0], "name": ["loss"], "value": [5.0]})
    own = RunSeries({**run().tables, "StepValue": value})
    assert [name for name in own.names() if "loss" in name] == ["loss", "StepValue.loss"]


def test_the_summary_has_the_pace_the_cards_and_the_events() -> None:
    found = summarise_run(run())
    assert (found.steps, found.first_step, found.last_step) == (STEPS, 1, STEPS)
    assert (found.step_time_median, found.step_time_p95) == (1.0, 3.0)
    assert [(gpu.index, gpu.memory_peak_gb, gpu.memory_total_gb) for gpu in found.gpus] == [(0, 20, 24), (1, 21, 24)]
    assert found.gpus[0].utilization_mean_percent == 90.0
    assert found.events == (("save_start", 2), ("oom_error", 1))
    loss = found.series[0]
    assert (loss.name, loss.count, loss.first, loss.last, loss.lowest, loss.highest) == (
        "loss", STEPS, 1.0, 1 / STEPS, 1 / STEPS, 50.0,
    )  # fmt: skip


def test_the_memory_in_use_is_judged_without_what_can_be_freed() -> None:
    table = table_of(
        "MetricsSample",
        {
            "id": [1, 2],
            "timestamp": [1.0, 2.0],
            "total_memory_gb": [64.0, 64.0],
            "available_memory_gb": [10.0, 20.0],
            "used_memory_gb": [63.0, 63.0],
        },
    )
    found = summarise_run(RunSeries({"MetricsSample": table}))
    assert (found.memory_peak_gb, found.memory_total_gb) == (54.0, 64.0)


def test_a_run_without_values_has_a_summary() -> None:
    found = summarise_run(RunSeries({}))
    assert (found.steps, found.series, found.gpus, found.began_at) == (0, (), (), None)


@pytest.mark.parametrize("levels", [BLOCKS, PLAIN])
def test_a_sparkline_shows_the_spike_at_any_width(levels: str) -> None:
    (drawn,) = run().drawn(["loss"], columns=1000)
    for width in (1, 5, 40, 200):
        line = sparkline(drawn.points, width=width, levels=levels)
        assert len(line) == width
        assert levels[-1] in line


@given(
    st.lists(st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)), max_size=50),
    st.integers(min_value=0, max_value=30),
)
def test_a_sparkline_is_never_wider_than_asked(values: list[float | None], width: int) -> None:
    points = Points([float(place) for place in range(len(values))], values, exact=True)
    line = sparkline(points, width=width)
    assert len(line) <= width
    assert set(line) <= {*BLOCKS, " "}


@given(st.lists(st.tuples(st.floats(allow_nan=False), st.floats(allow_nan=False)), min_size=1, max_size=20))
def test_no_numbers_of_a_machine_break_its_summary(rows: list[tuple[float, float]]) -> None:
    table = table_of(
        "MetricsSample",
        {
            "id": [*range(len(rows))],
            "timestamp": [at for at, _ in rows],
            "total_memory_gb": [value for _, value in rows],
            "available_memory_gb": [-value for _, value in rows],
        },
    )
    own = RunSeries({"MetricsSample": table})
    lines = list(metric_lines(summarise_run(own), own.drawn(columns=10)))
    assert all(line.isprintable() for line in lines)


def test_tables_hold_nan_for_what_is_missing() -> None:
    table = Table("StepMetric", run().tables["StepMetric"].columns)
    assert all(math.isnan(value) for value in table.numbers("gradient_norm"))
