"""Attempts of a job as one run."""

from __future__ import annotations

from stationmaster.model import StepReading
from stationmaster.series.joining import IMPORTED, join_attempts, steps_of_readings
from stationmaster.series.table import Table, table_of


def steps(*rows: tuple[int, float], began: float = 100.0) -> Table:
    return table_of(
        "StepMetric",
        {
            "id": [*range(1, len(rows) + 1)],
            "step": [step for step, _ in rows],
            "timestamp": [began + step for step, _ in rows],
            "loss": [loss for _, loss in rows],
        },
    )


def value(name: str, step: int, number: float) -> Table:
    return table_of("StepValue", {"id": [1], "step": [step], "timestamp": [1.0], "name": [name], "value": [number]})


def test_a_later_attempt_replaces_the_steps_from_which_it_resumed() -> None:
    made = join_attempts({1: [steps((1, 9.0), (2, 8.0), (3, 7.0), (4, 6.0))], 2: [steps((3, 0.7), (4, 0.6), (5, 0.5))]})
    assert made["StepMetric"].values("step") == [1, 2, 3, 4, 5]
    assert made["StepMetric"].values("loss") == [9.0, 8.0, 0.7, 0.6, 0.5]


def test_steps_after_the_resume_are_gone_even_where_the_later_attempt_has_not_come_to_them() -> None:
    made = join_attempts({1: [steps((1, 9.0), (10, 1.0))], 2: [steps((2, 8.0), (3, 7.0))]})
    assert made["StepMetric"].values("step") == [1, 2, 3]


def test_a_step_recorded_twice_has_its_last_values() -> None:
    made = join_attempts({1: [steps((1, 9.0), (2, 8.0), (1, 0.9))]})
    assert [(row["step"], row["loss"]) for row in made["StepMetric"].rows()] == [(1, 0.9), (2, 8.0)]


def test_values_of_several_names_are_kept_side_by_side() -> None:
    made = join_attempts({1: [value("reward", 1, 1.0), value("kl", 1, 2.0), value("reward", 1, 3.0)]})
    assert {(row["name"], row["value"]) for row in made["StepValue"].rows()} == {("reward", 3.0), ("kl", 2.0)}


def test_imported_rows_fill_in_what_no_attempt_recorded() -> None:
    made = join_attempts(
        {IMPORTED: [steps((1, 100.0), (2, 200.0), (7, 700.0)), value("reward", 2, 1.0)], 1: [steps((2, 0.2), (3, 0.3))]}
    )
    assert made["StepMetric"].values("loss") == [100.0, 0.2, 0.3, 700.0]
    assert made["StepValue"].values("name") == ["reward"]


def test_samples_of_all_attempts_are_in_order_of_time() -> None:
    def samples(*times: float) -> Table:
        return table_of("MetricsSample", {"id": [*range(len(times))], "timestamp": [*times]})

    made = join_attempts({2: [samples(50.0, 60.0)], 1: [samples(20.0, 10.0)]})
    assert made["MetricsSample"].values("timestamp") == [10.0, 20.0, 50.0, 60.0]


def test_readings_of_the_log_become_steps() -> None:
    reading = StepReading(attempt=1, at=50.0, step=7, loss=0.5, learning_rate=None, steps_per_second=4.0)
    assert list(steps_of_readings([reading]).rows()) == [
        {"id": 1, "step": 7, "timestamp": 50.0, "loss": 0.5, "learning_rate": None, "step_time_seconds": 0.25}
    ]
