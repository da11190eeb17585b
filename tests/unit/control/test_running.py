"""TRANSFERRING_DATA, EXECUTING and FETCHING_RESULTS: limits hold, silence proves nothing, models come first."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.step import Step
from stationmaster.control.machine.sight import Fate, Sighting
from stationmaster.control.states.executing import handler as executing
from stationmaster.control.states.executing.status_intake import ExecutingView
from stationmaster.control.states.fetching import handler as fetching
from stationmaster.control.states.fetching import wanted_files
from stationmaster.control.states.transferring import handler as transferring
from stationmaster.errors import TransferFailed
from stationmaster.model import (
    Checkpoint,
    Closing,
    Desired,
    Ending,
    Fetching,
    Job,
    Outcome,
    OutputFile,
    Reason,
    SavedModel,
    Setbacks,
    State,
)
from stationmaster.remote.status import Finished, LogPiece, Status, StepState, StepStatus, Supervisor
from stationmaster.series.table import table_of
from tests.support.jobs.spine_values import MACHINE, job, machine, rental, visit

POLICY = Policy()
CLOCKS: dict[str, Any] = {"wall": 0.0, "monotonic": 0.0, "boot_id": "b", "started": True}
CLOSING = Ending(closing=Closing(spent=0.0, at=150.0))
SILENCES = [Fate.THERE, Fate.UNKNOWN, Fate.MISSING]


def at(state: State, **fields: Any) -> Job:
    return job(**{"state": state, "state_since": 90.0, "machine": MACHINE, **fields})


def sighting(fate: Fate) -> Sighting:
    found = machine() if fate in (Fate.THERE, Fate.STOPPED) else None
    return Sighting(fate=fate, rental=rental(), machine=found)


def after(step: Step[Any]) -> Job:
    assert step.write is not None
    return step.write.job


def status(state: StepState = "running", **fields: Any) -> Status:
    train = StepStatus(index=0, name="train", state=state, training=True, started_at=1.0)
    values: dict[str, Any] = {"supervisor": Supervisor(alive=True, pid=1), "steps": (train,), **fields}
    return Status(**CLOCKS, **values)


def executed(before: Job, found: Status | None, *, now: float = 100.0, **fields: Any) -> Step[Any]:
    return executing.decide(ExecutingView(visit=visit(before, now=now), status=found, **fields), POLICY)


def test_data_that_cannot_be_sent_in_time_costs_the_attempt_not_the_job() -> None:
    seen = transferring.TransferringView(visit=visit(at(State.TRANSFERRING_DATA), now=90.0 + 3601))
    step = transferring.decide(seen, POLICY)
    assert (after(step).state, after(step).ending.further) == (State.RELEASING, Reason.TRANSFER_FAILED)


def test_the_hard_limit_also_ends_a_transfer() -> None:
    seen = transferring.TransferringView(visit=visit(at(State.TRANSFERRING_DATA, deadline_at=100.0), now=100.0))
    step = transferring.decide(seen, POLICY)
    assert step.then is None
    assert (after(step).outcome, after(step).reason) == (Outcome.INCOMPLETE, Reason.HARD_LIMIT)


@pytest.mark.parametrize("fate", SILENCES)
def test_a_machine_that_is_silent_before_the_training_is_not_given_up_for_it(fate: Fate) -> None:
    silent = at(State.TRANSFERRING_DATA, unreachable_since=95.0)
    step = transferring.decide(
        transferring.TransferringView(visit=visit(silent, now=100.0), sighting=sighting(fate)), POLICY
    )
    assert step.then is not None or after(step).state is State.TRANSFERRING_DATA


@pytest.mark.parametrize("fate", SILENCES)
@pytest.mark.parametrize("silent_for", [0.0, 299.0, 301.0, 86_400.0])
def test_a_silent_machine_is_not_a_lost_training(fate: Fate, silent_for: float) -> None:
    silent = at(State.EXECUTING, unreachable_since=100.0 - silent_for if silent_for else None)
    step = executed(silent, None, problem="no route to host", sighting=sighting(fate))
    if step.write is not None:
        assert (after(step).state, after(step).outcome) == (State.EXECUTING, None)
        assert after(step).unreachable_since == 100.0 - silent_for
        assert step.write.due_in
        raised = [alert.kind for alert in step.write.alerts]
        assert raised == (["silence"] if silent_for >= 300 else [])


def test_the_first_silence_is_told_once_and_the_pauses_grow() -> None:
    before, kinds, pauses = at(State.EXECUTING), [], []
    for _ in range(7):
        step = executed(before, None, problem="no route", sighting=Sighting(fate=Fate.UNKNOWN, rental=rental()))
        assert step.write is not None
        kinds += [told.kind for told in step.write.events]
        pauses.append(step.write.due_in)
        before = step.write.job
    assert kinds == ["unreachable"]
    assert pauses == [2.0, 5.0, 15.0, 30.0, 60.0, 60.0, 60.0]


def test_a_machine_that_is_gone_by_its_provider_s_word_costs_the_attempt() -> None:
    step = executed(at(State.EXECUTING), None, problem="no route", sighting=Sighting(fate=Fate.GONE))
    assert (after(step).state, after(step).ending.further) == (State.RELEASING, Reason.MACHINE_LOST)
    last = executed(at(State.EXECUTING, failed_after_login=2), None, problem="x", sighting=Sighting(fate=Fate.GONE))
    assert (after(last).outcome, after(last).reason) == (Outcome.FAILED, Reason.MACHINE_LOST)


def test_an_answer_ends_the_silence() -> None:
    before = at(
        State.EXECUTING, unreachable_since=50.0, setbacks=Setbacks(failures=4), machine=replace(MACHINE, absences=1)
    )
    step = executed(before, status())
    assert after(step).unreachable_since is None
    assert (after(step).setbacks.failures, after(step).machine.absences) == (0, 0)
    assert step.write is not None
    assert step.write.cleared_alerts == ("silence",)


def test_the_hard_limit_stops_the_training_and_saves_the_model() -> None:
    step = executed(at(State.EXECUTING, deadline_at=100.0), status())
    assert isinstance(step.then, executing.Stop)
    assert after(step).ending.reason == Reason.HARD_LIMIT
    assert not isinstance(executed(at(State.EXECUTING, deadline_at=101.0), status()).then, executing.Stop)


def test_a_limit_reached_before_the_training_began_is_not_the_person_s_cancel() -> None:
    pending = StepStatus(index=0, name="train", state="pending", training=True)
    step = executed(at(State.EXECUTING, deadline_at=100.0), replace(status(), steps=(pending,)))
    assert (after(step).state, after(step).reason) == (State.RELEASING, Reason.HARD_LIMIT)
    assert after(step).outcome is not Outcome.CANCELLED


@pytest.mark.parametrize("fate", [Fate.UNKNOWN, Fate.MISSING])
def test_past_the_limit_a_machine_is_waited_for_while_nobody_can_say_what_it_does(fate: Fate) -> None:
    silent = at(State.EXECUTING, deadline_at=100.0, unreachable_since=150.0, ending=CLOSING)
    patient = executed(silent, None, now=150.0 + 86_400, problem="x", sighting=sighting(fate))
    closing = after(patient).ending.closing
    assert closing is not None
    assert (after(patient).state, closing.spent) == (State.EXECUTING, 0.0)


def test_the_log_is_read_to_its_end_before_anything_is_concluded() -> None:
    piece = LogPiece(stream="0.1", inode=1, start=0, end=3, data=b"abc")
    unread = status("done", finished=Finished(result="done"), log=(piece,))
    step = executed(at(State.EXECUTING), unread)
    assert step.write is not None
    assert (step.write.job.state, step.write.due_in) == (State.EXECUTING, 0.0)
    assert [chunk.data for chunk in step.write.logs] == [b"abc"]
    more = executed(at(State.EXECUTING), status("done", finished=Finished(result="done"), more=True))
    assert after(more).state is State.EXECUTING
    read = executed(at(State.EXECUTING), status("done", finished=Finished(result="done")))
    assert (after(read).state, after(read).ending.reason) == (State.FETCHING_RESULTS, Reason.FINISHED)


def test_measured_rows_are_read_to_their_end_before_anything_is_concluded() -> None:
    rows = table_of("RunInfo", {"id": [1], "key": ["exit_code"], "value": ["0"]})
    unread = status("done", finished=Finished(result="done"), series=(rows,), series_read={"RunInfo": 1})
    step = executed(at(State.EXECUTING), unread)
    assert step.write is not None
    assert (step.write.job.state, step.write.due_in) == (State.EXECUTING, 0.0)
    assert [block.name for block in step.write.series] == ["RunInfo"]
    assert (step.write.job.watching.since or {})["series"] == {"RunInfo": 1}


@pytest.mark.parametrize("limit", [{"desired": Desired.STOP}, {"deadline_at": 100.0}])
def test_a_machine_that_always_has_more_rows_is_stopped_all_the_same(limit: dict[str, Any]) -> None:
    rows = table_of("RunInfo", {"id": [1], "key": ["k"], "value": ["v"]})
    endless = status("running", more=True, series=(rows,), series_read={"RunInfo": 1})
    step = executed(at(State.EXECUTING, **limit), endless)
    assert isinstance(step.then, executing.Stop)
    assert step.write is not None
    assert step.write.series, "what it sent is kept"


def test_a_machine_that_never_runs_out_of_rows_is_left_when_the_time_to_stop_is_over() -> None:
    rows = table_of("RunInfo", {"id": [1], "key": ["k"], "value": ["v"]})
    endless = status("done", finished=Finished(result="done"), more=True, series=(rows,))
    late = at(State.EXECUTING, desired=Desired.STOP, ending=Ending(stops=4))
    assert after(executed(late, endless)).state is State.FETCHING_RESULTS


def test_a_failed_step_is_explained_and_its_files_are_fetched_all_the_same() -> None:
    failed = replace(status("failed"), finished=Finished(result="failed"))
    step = executed(at(State.EXECUTING), failed)
    assert after(step).state is State.FETCHING_RESULTS
    assert after(step).ending.reason == Reason.STEP_FAILED
    assert "step train" in str(after(step).ending.explanation)


@pytest.mark.parametrize("fields", [{"supervisor": Supervisor(alive=False)}, {"needs_secrets": ("HF_TOKEN",)}])
def test_a_supervisor_that_is_not_at_work_is_started(fields: dict[str, Any]) -> None:
    assert isinstance(executed(at(State.EXECUTING), status(**fields)).then, executing.Start)


def test_a_step_s_changes_are_told_once() -> None:
    first = executed(at(State.EXECUTING), status())
    assert first.write is not None
    assert [told.kind for told in first.write.events] == ["step", "training_started"]
    again = executed(first.write.job, status())
    assert again.write is not None
    assert again.write.events == ()


def output(path: str, *, step: int | None = None, kind: str = "checkpoint", mtime: float = 1.0) -> OutputFile:
    return OutputFile(path=path, kind=kind, size=1, mtime=mtime, sha256="0" * 64)


def wanted(*files: OutputFile) -> list[str]:
    steps = {file.path: int(file.path.split("_")[1].split(".")[0]) if "_" in file.path else None for file in files}
    known = [Checkpoint(attempt=1, path=file.path, kind=file.kind, size=1, step=steps[file.path]) for file in files]
    return [file.path for file in wanted_files.wanted_files(files, at(State.FETCHING_RESULTS), known)]


@given(st.lists(st.integers(0, 10_000), unique=True, min_size=1), st.booleans())
def test_the_final_model_is_wanted_else_the_latest(steps: list[int], final: bool) -> None:
    files = [output(f"output/m_{step}.safetensors") for step in steps]
    if final:
        files.append(output("output/m.safetensors"))
    best = "output/m.safetensors" if final else f"output/m_{max(steps)}.safetensors"
    assert wanted(*files) == [best]


def test_a_model_that_is_being_written_is_left_for_one_that_is_not_or_waited_for() -> None:
    whole, moving = output("output/m_1.safetensors"), replace(output("output/m_2.safetensors"), sha256=None)
    assert wanted_files.steady_files([moving, whole]) == [whole]
    assert wanted_files.steady_files([]) == []
    with pytest.raises(TransferFailed, match=r"m_2.safetensors was still being written"):
        wanted_files.steady_files([moving, output("a.png", kind="sample")])


def test_as_many_checkpoints_as_are_kept_come_after_the_model_without_those_at_home() -> None:
    files = [output(f"output/m_{step}.safetensors") for step in (40, 30, 20, 10)]
    rows = [
        Checkpoint(attempt=1, path=file.path, kind=file.kind, size=1, step=40 - 10 * at)
        for at, file in enumerate(files)
    ]
    ended = at(State.FETCHING_RESULTS)
    further = partial(wanted_files.further_checkpoints, files, keep=2)
    assert further(ended, rows) == files[1:3]
    assert further(ended, [rows[0], replace(rows[1], location="/here"), *rows[2:]]) == [files[2]]
    spoilt = replace(ended, watching=replace(ended.watching, spoilt_at=30))
    assert further(spoilt, rows) == files[2:], "none that was saved after the loss became NaN"


def test_the_model_is_brought_home_before_samples_and_logs() -> None:
    files = [output("a.png", kind="sample"), output("output/m.safetensors"), output("b.log", kind="log")]
    assert wanted(*files) == ["output/m.safetensors", "a.png", "b.log"]


def test_results_are_taken_down_then_fetched_one_by_one_then_safe() -> None:
    fresh = fetching.decide(fetching.FetchingView(visit=visit(at(State.FETCHING_RESULTS))), POLICY)
    assert isinstance(fresh.then, fetching.TakeInventory)
    some, none = Fetching(wanted=(output("p"),)), Fetching(wanted=())
    one = fetching.decide(fetching.FetchingView(visit=visit(at(State.FETCHING_RESULTS, fetching=some))), POLICY)
    assert isinstance(one.then, fetching.Fetch)
    done = fetching.decide(fetching.FetchingView(visit=visit(at(State.FETCHING_RESULTS, fetching=none))), POLICY)
    assert after(done).state is State.FINALIZING


@pytest.mark.parametrize("model_attempt", [1, 2])
def test_a_machine_lost_while_fetching_is_only_a_loss_if_this_attempt_s_model_is_not_safe(model_attempt: int) -> None:
    model = SavedModel(address="/m", attempt=model_attempt)
    before = at(State.FETCHING_RESULTS, attempt=2, model=model)
    step = fetching.decide(fetching.FetchingView(visit=visit(before), sighting=Sighting(fate=Fate.GONE)), POLICY)
    assert after(step).state is (State.FINALIZING if model_attempt == 2 else State.RELEASING)
    assert after(step).outcome is None
