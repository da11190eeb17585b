"""What a run was doing at a time, by its events and steps."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from stationmaster.analysis.facts.phases import Phases, RunPhase, events_of, phases_of
from stationmaster.series.table import Table, table_of


def events(*rows: tuple[float, str, int | None]) -> Table:
    return table_of(
        "TrainingEvent",
        {
            "id": [*range(len(rows))],
            "timestamp": [float(at) for at, _, _ in rows],
            "event_type": [kind for _, kind, _ in rows],
            "details": [json.dumps({} if step is None else {"step": step}) for _, _, step in rows],
        },
    )


def steps(*rows: tuple[float, int]) -> Table:
    return table_of(
        "StepMetric",
        {
            "id": [*range(len(rows))],
            "timestamp": [float(at) for at, _ in rows],
            "step": [step for _, step in rows],
            "step_time_seconds": [1.0] * len(rows),
        },
    )


def phases(rows: Sequence[tuple[float, str, int | None]], made: Sequence[tuple[float, int]] = ()) -> Phases:
    table = steps(*made) if made else None
    return phases_of(events_of(events(*rows)), table, last_row_at=1000.0)


def test_a_run_loads_until_it_starts_and_trains_between_its_pauses() -> None:
    found = phases(
        [
            (100, "training_start", 0),
            (200, "sampling_start", 50),
            (220, "sampling_end", 50),
            (220, "save_start", 50),
            (230, "save_end", 50),
            (900, "training_end", 300),
        ]
    )
    seen = [found.at(time) for time in (99, 101, 210, 225, 240, 950)]
    assert seen == [
        RunPhase.LOADING,
        RunPhase.TRAINING,
        RunPhase.SAMPLING,
        RunPhase.SAVING,
        RunPhase.TRAINING,
        RunPhase.ENDED,
    ]
    assert found.seconds_in(RunPhase.SAMPLING) == 20
    assert found.seconds_in(RunPhase.SAVING) == 10


def test_without_a_start_or_a_step_nothing_is_known() -> None:
    assert phases([(200, "save_start", None)]).at(250) is None


def test_a_pause_that_the_run_did_not_outlive_lasts_until_its_end() -> None:
    found = phases([(100, "training_start", 0), (200, "sampling_start", 50), (260, "oom_error", 51)])
    assert found.at(260) is RunPhase.SAMPLING
    assert found.at(999) is RunPhase.SAMPLING


@pytest.mark.parametrize("own_row_at", [199.0, 200.0, 200.5])
def test_a_pause_without_an_end_is_over_at_the_next_step(own_row_at: float) -> None:
    rows = [(100.0, "training_start", 0), (200.0, "save_start", 50)]
    found = phases(rows, [(own_row_at, 50), (215.0, 51)])
    assert found.at(210) is RunPhase.SAVING
    assert found.at(216) is RunPhase.TRAINING


def test_the_end_of_a_later_pause_does_not_end_an_earlier_one() -> None:
    rows = [
        (100.0, "training_start", 0),
        (200.0, "save_start", 50),
        (400.0, "save_start", 100),
        (410.0, "save_end", 100),
    ]
    found = phases(rows, [(205.0, 51), (390.0, 99)])
    assert found.at(300) is RunPhase.TRAINING
    assert found.seconds_in(RunPhase.SAVING) == 15


def test_after_an_interruption_the_run_loads_again() -> None:
    rows = [(100.0, "training_start", 0), (700.0, "training_start", 20)]
    found = phases(rows, [(150.0, 10), (200.0, 20), (750.0, 30)])
    assert found.at(180) is RunPhase.TRAINING
    assert found.at(650) is RunPhase.LOADING
    assert found.at(720) is RunPhase.TRAINING


def test_memory_just_after_a_pause_is_not_the_trainings() -> None:
    found = phases([(100, "training_start", 0), (200, "sampling_start", 50), (220, "sampling_end", 50)])
    assert not found.is_settled_training(223)
    assert found.is_settled_training(240)


def test_the_first_row_of_a_step_shows_when_training_began() -> None:
    assert phases([(900, "training_end", 5)], [(110.0, 10), (120.0, 20)]).first_step_at == 100.0
