"""What proves that a machine does nothing, what disproves it, and what proves nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from stationmaster.saved_state import from_json, to_json
from stationmaster.watch.policy import StallPolicy
from stationmaster.watch.stillness import MachineMoment, Stillness

POLICY = StallPolicy()
IDLE = MachineMoment(
    at=0.0,
    gpus=2,
    gpu_percent=0.0,
    gpu_power_part=0.1,
    gpu_memory_gb=20.0,
    cpu_percent=0.5,
    memory_gb=6.0,
    io_mb_per_second=0.0,
    network_mb_per_second=0.0,
    processes=(7, 8),
    states=("asleep", "asleep"),
)


def watched(until: float, *, begin: float = 0.0, stillness: Stillness | None = None, **changes: Any) -> Stillness:
    found = stillness or Stillness()
    at = begin
    while at <= until:
        found.observe(replace(IDLE, at=at, **changes), POLICY)
        at += 5.0
    return found


def after(moment: MachineMoment) -> float:
    """How long it has been still after a hundred seconds of rest, this moment and rest again for as long."""
    found = watched(100.0)
    found.observe(replace(moment, at=105.0), POLICY)
    return watched(205.0, begin=110.0, stillness=found).lasted(205.0, POLICY)


def test_it_lasts_from_the_first_proof_to_the_last() -> None:
    assert watched(400.0).lasted(410.0, POLICY) == 400.0
    assert Stillness().lasted(410.0, POLICY) == 0.0


@pytest.mark.parametrize(
    "moving",
    [
        {"gpu_percent": 4.0},
        {"gpu_power_part": 0.6},
        {"gpu_memory_gb": 20.5},
        {"cpu_percent": 11.0},
        {"memory_gb": 6.2},
        {"memory_gb": 5.8},
        {"io_mb_per_second": 0.5},
        {"network_mb_per_second": 0.5},
        {"processes": (7, 9)},
        {"processes": (7,), "states": ("asleep",)},
        {"states": ("asleep", "disk")},
        {"states": ("stopped", "stopped")},
    ],
)
def test_one_sample_that_shows_something_begins_it_anew(moving: dict[str, Any]) -> None:
    assert after(replace(IDLE, **moving)) == 95.0


@pytest.mark.parametrize(
    "unknown",
    [
        {"gpu_percent": None},
        {"cpu_percent": None},
        {"memory_gb": None},
        {"io_mb_per_second": None},
        {"network_mb_per_second": None},
        {"states": ("asleep", None)},
        {"states": ("asleep", "running")},
        {"states": ()},
        {"processes": (), "states": ()},
    ],
)
def test_a_sample_that_proves_nothing_neither_ends_nor_extends_it(unknown: dict[str, Any]) -> None:
    assert after(replace(IDLE, **unknown)) == 205.0
    found = watched(100.0)
    watched(150.0, begin=105.0, stillness=found, **unknown)
    assert found.lasted(150.0, POLICY) == 100.0
    assert watched(1000.0, **unknown).lasted(1000.0, POLICY) == 0.0


def test_threads_may_be_looked_at_rarely_if_all_else_rests() -> None:
    unread = {"states": (None, None)}
    found = watched(240.0, begin=105.0, stillness=watched(100.0), **unread)
    assert watched(250.0, begin=245.0, stillness=found).lasted(250.0, POLICY) == 250.0
    found = watched(260.0, begin=105.0, stillness=watched(100.0), **unread)
    assert watched(270.0, begin=265.0, stillness=found).lasted(270.0, POLICY) == 5.0


def test_whether_there_are_gpus_must_be_known() -> None:
    assert watched(400.0, gpus=0, gpu_percent=None, gpu_power_part=None).lasted(400.0, POLICY) == 400.0
    assert watched(400.0, gpus=None, gpu_percent=None).lasted(400.0, POLICY) == 0.0


def test_a_gap_or_a_clock_set_back_begins_it_anew() -> None:
    assert watched(400.0, begin=165.0, stillness=watched(100.0)).lasted(400.0, POLICY) == 235.0
    assert watched(400.0, begin=155.0, stillness=watched(100.0)).lasted(400.0, POLICY) == 400.0
    assert watched(60.0, begin=50.0, stillness=watched(100.0)).lasted(60.0, POLICY) == 10.0


def test_old_samples_prove_nothing_about_now() -> None:
    assert watched(400.0).lasted(540.0, POLICY) == 400.0
    assert watched(400.0).lasted(560.0, POLICY) == 0.0


def test_a_burst_every_minute_is_no_work_but_a_trickle_is() -> None:
    found = Stillness()
    for second in range(0, 400, 5):
        burst = 0.03 if second % 60 == 0 else 0.0
        found.observe(replace(IDLE, at=float(second), network_mb_per_second=burst), POLICY)
    assert found.lasted(400.0, POLICY) == 395.0
    assert watched(400.0, network_mb_per_second=0.02).lasted(400.0, POLICY) < 100.0


def test_a_run_that_rested_before_may_rest_twice_as_long() -> None:
    found = watched(400.0)
    assert found.needed(360.0, POLICY) == 360.0
    found.note_progress(learn=True)
    assert found.needed(360.0, POLICY) == 800.0
    unhealthy = watched(400.0)
    unhealthy.note_progress(learn=False)
    assert unhealthy.needed(360.0, POLICY) == 360.0


def test_a_machine_that_looks_idle_while_steps_are_done_proves_nothing() -> None:
    found = Stillness()
    for begin in range(0, 2000, 100):
        watched(begin + 95.0, begin=float(begin), stillness=found)
        found.note_progress(learn=True)
    assert found.needed(360.0, POLICY) == POLICY.learned_cap


def test_only_work_of_the_training_itself_refutes_a_verdict() -> None:
    found = watched(400.0)
    watched(600.0, begin=405.0, stillness=found, network_mb_per_second=5.0)
    assert not found.works_again(POLICY)
    watched(640.0, begin=605.0, stillness=found, gpu_percent=90.0)
    assert not found.works_again(POLICY)
    watched(670.0, begin=645.0, stillness=found, gpu_percent=90.0)
    assert found.works_again(POLICY)
    found.refute()
    watched(1200.0, begin=675.0, stillness=found)
    assert found.lasted(1200.0, POLICY) == 0.0
    found.note_progress(learn=True)
    assert found.lasted(1200.0, POLICY) == 525.0


def test_it_continues_where_it_was_stored() -> None:
    half = from_json(Stillness, json.loads(json.dumps(to_json(watched(200.0)))))
    assert watched(400.0, begin=205.0, stillness=half) == watched(400.0)
    assert from_json(Stillness, {}) == Stillness()


def test_the_evidence_is_put_in_words() -> None:
    assert watched(400.0).describe() == "GPU 0 %, CPU 0 %, nothing read or written, all 2 processes asleep"
    alone = watched(400.0, gpus=0, gpu_percent=None, processes=(7,), states=("asleep",), cpu_percent=2.0)
    assert alone.describe() == "CPU 2 %, nothing read or written, the process asleep"
