"""A training that is to end saves first: asked once, waited for within bounds, and left out where it cannot help."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.step import Step
from stationmaster.control.states.executing import handler as executing
from stationmaster.control.states.executing.last_save import Save
from stationmaster.control.states.executing.status_intake import ExecutingView
from stationmaster.model import Desired, Ending, Job, LastSave, Reason, State, Watching
from stationmaster.recipes.commands import SaveRequest, StopRules
from stationmaster.remote.status import Finished, LogPiece, Status, StepStatus, Supervisor
from stationmaster.settings import MonitoringSettings
from tests.support.jobs.spine_values import MACHINE, job, visit

POLICY = Policy()
CAN_SAVE = StopRules(grace=45.0, save=SaveRequest(signal="USR1", proof="output/*.safetensors", timeout=120.0))
AT_STEP_120 = b"\rcats:  30%|###       | 120/400 [00:12<00:28, 10.00it/s, lr: 1.0e-02 loss: 1.000e-01]"
SAVED = LastSave(state="saved", at=90.0)
SAVING = Ending(save=LastSave(state="saving", at=100.0))
STALLED = Watching(stalled=True)


def training(**fields: Any) -> Job:
    return job(state=State.EXECUTING, state_since=10.0, machine=MACHINE, **fields)


def sick(*anomalies: str) -> Watching:
    return Watching(sick=True, anomalies=anomalies)


def status(log: bytes = AT_STEP_120, **fields: Any) -> Status:
    train = StepStatus(index=0, name="train", state="running", training=True, try_number=1, started_at=1.0)
    piece = LogPiece(stream="0.1", inode=1, start=0, end=len(log), data=log)
    values = {"supervisor": Supervisor(alive=True, pid=1), "steps": (train,), "training_alive": True, **fields}
    return Status(wall=0.0, monotonic=0.0, boot_id="b", started=True, log=(piece,), **values)


def decided(
    before: Job,
    *,
    rules: StopRules = CAN_SAVE,
    now: float = 100.0,
    monitoring: MonitoringSettings | None = None,
    **fields: Any,
) -> Step[Any]:
    seen = ExecutingView(
        visit=visit(before, now=now, monitoring=monitoring),
        status=status(**fields),
        framework="ai-toolkit",
        stopping=rules,
    )
    return executing.decide(seen, POLICY)


def after(step: Step[Any]) -> Job:
    assert step.write is not None
    return step.write.job


def told(step: Step[Any]) -> list[str]:
    assert step.write is not None
    return [event.kind for event in step.write.events]


ENDINGS: list[tuple[dict[str, Any], Reason]] = [
    ({"desired": Desired.STOP}, Reason.STOPPED_BY_USER),
    ({"desired": Desired.CANCEL_KEEP}, Reason.CANCELLED_BY_USER),
    ({"deadline_at": 99.0}, Reason.HARD_LIMIT),
    ({"watching": STALLED}, Reason.STALLED),
    ({"watching": sick("gpu_idle")}, Reason.ANOMALY),
]


@pytest.mark.parametrize(("wish", "reason"), ENDINGS)
def test_whatever_ends_a_training_asks_for_a_checkpoint_first(wish: dict[str, Any], reason: Reason) -> None:
    step = decided(training(**wish))
    assert isinstance(step.then, Save)
    assert after(step).ending.reason == reason
    assert after(step).ending.save == SAVING.save, "written down before it is asked"
    assert "save_asked" in told(step)


@pytest.mark.parametrize(("wish", "reason"), ENDINGS)
def test_a_recipe_that_knows_no_way_to_save_is_stopped_at_once(wish: dict[str, Any], reason: Reason) -> None:
    step = decided(training(**wish), rules=StopRules(grace=7.0))
    assert step.then == executing.Stop(grace_seconds=7.0)
    assert after(step).ending.reason == reason


@given(st.floats(min_value=0, max_value=119))
def test_while_it_saves_it_is_asked_about_it_again_and_told_once(waited: float) -> None:
    before = training(desired=Desired.STOP, ending=SAVING)
    step = decided(before, now=100.0 + waited)
    assert isinstance(step.then, Save)
    assert after(step).ending.save == SAVING.save, "the time is counted from the first asking"
    assert "save_asked" not in told(step)


def test_a_stalled_run_that_saves_because_it_was_asked_is_waited_for() -> None:
    before = training(watching=STALLED, ending=SAVING)
    step = decided(before, now=101.0, log=AT_STEP_120 + b"\nSaving at step 120\n")
    assert isinstance(step.then, Save)


@pytest.mark.parametrize("state", ["saved", "timed_out", "not_running", "impossible", "a word of newer code"])
def test_whatever_came_of_the_asking_the_training_is_stopped_then(state: str) -> None:
    before = training(desired=Desired.STOP, ending=Ending(save=LastSave(state=state, at=99.0)))
    assert decided(before).then == executing.Stop(grace_seconds=45.0)


@pytest.mark.parametrize(("most", "waited"), [(180.0, 120.0), (30.0, 30.0), (0.0, 0.0)])
def test_the_shorter_of_the_recipes_time_and_the_settings_time_bounds_the_wait(most: float, waited: float) -> None:
    monitoring = MonitoringSettings(save_timeout=most)
    before = training(desired=Desired.STOP, ending=SAVING)
    assert isinstance(decided(before, now=100.0 + waited, monitoring=monitoring).then, executing.Stop)
    if waited:
        assert isinstance(decided(before, now=100.0 + waited - 0.1, monitoring=monitoring).then, Save)


@pytest.mark.parametrize(
    ("fields", "log"),
    [
        ({"watching": STALLED}, AT_STEP_120 + b"\nSaving at step 120\n"),
        ({"watching": sick("nan_loss")}, AT_STEP_120),
        ({"watching": sick("disk_filling")}, AT_STEP_120),
        ({"desired": Desired.STOP}, b"create LoRA network\n"),
        ({"ending": Ending(reason=Reason.MACHINE_STOPPED)}, AT_STEP_120),
    ],
    ids=["it hangs in saving", "nothing but NaN", "no room", "no step yet", "its machine was stopped"],
)
def test_a_save_that_cannot_help_is_left_out(fields: dict[str, Any], log: bytes) -> None:
    assert isinstance(decided(training(**fields), log=log).then, executing.Stop)


def test_a_cancel_waits_for_no_save() -> None:
    step = decided(training(desired=Desired.CANCEL, ending=SAVING))
    assert step.then is None
    assert after(step).state is State.RELEASING


@pytest.mark.parametrize("ending", [Reason.STOPPED_BY_USER, Reason.STALLED, Reason.HARD_LIMIT])
def test_a_training_that_finishes_while_it_is_asked_to_save_is_complete(ending: Reason) -> None:
    before = training(desired=Desired.STOP, ending=Ending(reason=ending, save=SAVED))
    step = decided(before, log=b"", finished=Finished(result="done"), training_alive=False)
    assert after(step).ending.reason == Reason.FINISHED
