"""How a training ended that somebody else started: its files and its log decide, because its exit code is unknown."""

from __future__ import annotations

from typing import Any

import pytest

from stationmaster.control.states.executing.adopted_end import adopted_end
from stationmaster.model import AdoptedTraining, Progress, Reason
from stationmaster.remote.status import parse_status
from tests.support.jobs.spine_values import job, spec

TRAINING = AdoptedTraining(target="box", log="/l", output="/run/out", process={"pid": 7})


def ended(result: str, *, error: str | None = None, step: int | None = None, total: int | None = None) -> Any:
    state = "done" if result == "done" else "failed"
    train = {"index": 0, "name": "train", "training": True, "state": state, "try": 1, "error": error}
    status = parse_status(
        {
            "format": 1,
            "version": "0",
            "wall": 10.0,
            "monotonic": 1.0,
            "boot_id": "b",
            "started": True,
            "supervisor": {"alive": False, "pid": None},
            "steps": [train],
            "finished": {"result": result, "step": None, "exit_code": None, "at": 9.0},
            "training_alive": False,
            "needs_secrets": [],
            "log": [],
            "more": False,
            "outputs": [],
        }
    )
    watched = job(spec=spec(adopted=TRAINING), progress=Progress(step=step, total_steps=total))
    return adopted_end(watched, status)


@pytest.mark.parametrize(("step", "total"), [(None, None), (100, None), (100, 100), (96, 100), (None, 100)])
def test_a_whole_model_counts_as_finished_near_the_last_step_or_if_that_is_unknown(
    step: int | None, total: int | None
) -> None:
    assert ended("done", step=step, total=total) == (Reason.FINISHED, None)


def test_a_log_that_ends_far_from_the_last_step_does_not() -> None:
    reason, explanation = ended("done", step=300, total=1000)
    assert reason is Reason.STEP_FAILED
    assert "step 300 of 1000" in explanation


def test_without_a_whole_model_it_failed_and_the_error_or_the_folder_is_named() -> None:
    assert "below /run/out" in ended("failed")[1]
    reason, explanation = ended("failed", error="RuntimeError: CUDA out of memory")
    assert reason is Reason.STEP_FAILED
    assert "RuntimeError: CUDA out of memory" in explanation
    assert "exit code cannot be known" in explanation
