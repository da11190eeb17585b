"""From a stop or the limit to the end of the GPU's bill there is a bound, whatever the machine says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.step import failed_try
from stationmaster.control.machine.closing_time import action_limit, look_is_due, seconds_left, stop_limit
from stationmaster.control.machine.parking import Park, costs_as_seen
from stationmaster.control.machine.revive import Revive
from stationmaster.control.machine.sight import ANSWERING, Fate, Sighting
from stationmaster.control.states.executing import handler as executing
from stationmaster.control.states.executing.status_intake import ExecutingView
from stationmaster.control.states.fetching import handler as fetching
from stationmaster.control.states.finalizing import handler as finalizing
from stationmaster.lifecycle import is_parked
from stationmaster.model import (
    Closing,
    CostLine,
    Desired,
    Ending,
    Job,
    MachineStatus,
    Outcome,
    Parked,
    Reason,
    SavedModel,
    Setbacks,
    State,
)
from stationmaster.money import MicroDollars
from stationmaster.remote.status import Finished, LogPiece, Status, StepStatus, Supervisor
from tests.support.jobs.spine_values import MACHINE, job, machine, rental, visit

POLICY = Policy()
RUNS = Sighting(fate=Fate.THERE, rental=rental(), machine=machine())
STOPPED = Sighting(fate=Fate.STOPPED, rental=rental(), machine=machine(status=MachineStatus.STOPPED))
UNKNOWN = Sighting(fate=Fate.UNKNOWN, rental=rental())
LONGEST_LOOK = 120.0  # between two visits, where nothing takes its time


def at(state: State, **fields: Any) -> Job:
    return job(**{"state": state, "state_since": 90.0, "machine": MACHINE, **fields})


def closing(spent: float, at: float = 95.0) -> Ending:
    return Ending(closing=Closing(spent=spent, at=at))


def closing_of(job: Job) -> Closing:
    assert job.ending.closing is not None
    return job.ending.closing


def said(*, more: bool = False, over: bool = False, talks: bool = False) -> Status:
    """A status of a machine that may say anything."""
    train = StepStatus(index=0, name="train", state="running", training=True, started_at=1.0)
    piece = LogPiece(stream="0.1", inode=1, start=0, end=3, data=b"abc")
    return Status(
        wall=0.0, monotonic=0.0, boot_id="b", started=True, supervisor=Supervisor(alive=True, pid=1), steps=(train,),
        more=more, finished=Finished(result="failed") if over else None, log=(piece,) if talks else (),
    )  # fmt: skip


WORDS = st.one_of(st.none(), st.builds(said, more=st.booleans(), over=st.booleans(), talks=st.booleans()))


def visited(before: Job, word: Status | None, sighting: Sighting, *, now: float) -> Job | Park:
    """The job after a visit whose action, if any, brought nothing."""
    if before.state is State.EXECUTING:
        seen = ExecutingView(visit=visit(before, now=now), status=word, problem="x", sighting=sighting)
        step: Any = executing.decide(seen, POLICY)
    else:
        step = fetching.decide(
            fetching.FetchingView(visit=visit(before, now=now), sighting=sighting, can_stop=True), POLICY
        )
    if isinstance(step.then, Park):
        return step.then
    after = step.write.job if step.write is not None else before
    return failed_try(after, POLICY)[0] if step.then is not None else after


@given(st.lists(st.tuples(WORDS, st.floats(20.0, LONGEST_LOOK)), min_size=1, max_size=20), st.booleans())
def test_whatever_a_machine_says_its_gpu_stops_billing_within_the_bound(
    script: list[tuple[Status | None, float]], by_person: bool
) -> None:
    now, fields = 1000.0, {"desired": Desired.STOP} if by_person else {"deadline_at": 1000.0}
    current: Job | Park = at(State.EXECUTING, **fields)
    while isinstance(current, Job):
        word, pause = script[int(now * 7) % len(script)]
        assert now <= 1000.0 + POLICY.bound_seconds, (current.state, current.ending.closing)
        current = visited(current, word, RUNS, now=now)
        if isinstance(current, Job) and current.state is State.FINALIZING:
            return
        now += 0.0 if isinstance(current, Job) and is_parked(current) else pause  # a mark is followed up at once
    assert current.provider_id == "m1"


def test_a_training_that_takes_no_notice_of_its_stop_is_left_and_its_model_fetched() -> None:
    nearly = stop_limit(POLICY) - 10.0
    before = at(State.EXECUTING, desired=Desired.STOP, ending=closing(nearly))
    seen = ExecutingView(visit=visit(before), status=said(more=True), sighting=RUNS)
    assert isinstance(executing.decide(seen, POLICY).then, executing.Stop)
    over = executing.decide(replace(seen, visit=visit(before, now=106.0)), POLICY)
    assert over.write is not None
    after = over.write.job
    assert (after.state, after.ending.reason, after.ending.unstopped) == (
        State.FETCHING_RESULTS, Reason.STOPPED_BY_USER, True,
    )  # fmt: skip
    assert "stop_without_effect" in [told.kind for told in over.write.events]


def test_a_stop_that_is_not_heard_is_repeated_after_growing_pauses() -> None:
    before = at(State.EXECUTING, desired=Desired.STOP)
    for times in (1, 2, 3):
        step = executing.decide(ExecutingView(visit=visit(before), status=said()), POLICY)
        assert step.write is not None
        before = step.write.job
        assert before.ending.stops == times
    fourth = executing.decide(ExecutingView(visit=visit(before), status=said()), POLICY).write
    assert fourth is not None
    assert fourth.job.ending.stops == 4
    left = executing.decide(ExecutingView(visit=visit(fourth.job), status=said()), POLICY).write
    assert left is not None
    assert left.job.state is State.FETCHING_RESULTS, "a fifth would not help"


@pytest.mark.parametrize("sighting", [UNKNOWN, STOPPED])
def test_time_in_which_nobody_could_do_anything_does_not_count(sighting: Sighting) -> None:
    before = at(State.FETCHING_RESULTS, desired=Desired.STOP, ending=closing(7.0))
    after = visited(before, None, sighting, now=95.0 + 86_400)
    assert isinstance(after, Job)
    assert (closing_of(after).spent, closing_of(after).at) == (7.0, 95.0 + 86_400)


@pytest.mark.parametrize("state", [State.EXECUTING, State.FETCHING_RESULTS])
def test_a_stopped_machine_that_cannot_be_started_is_not_tried_for_ever(state: State) -> None:
    now, before = 1000.0, at(state, deadline_at=90.0, ending=Ending(reason=Reason.HARD_LIMIT))
    while not is_parked(before):
        assert now <= 1000.0 + POLICY.bound_seconds + 10 * LONGEST_LOOK
        after = visited(before, None, STOPPED, now=now)
        assert isinstance(after, Job)
        before, now = after, now + LONGEST_LOOK
    assert closing_of(before).spent == 0.0


def test_of_many_small_files_only_some_wait_for_the_provider_and_no_time_is_lost() -> None:
    before = at(State.FETCHING_RESULTS, desired=Desired.STOP, ending=closing(7.0))
    assert not look_is_due(before, POLICY, now=109.0)
    assert look_is_due(before, POLICY, now=110.0)
    unasked = visited(before, None, ANSWERING, now=105.0)
    assert isinstance(unasked, Job)
    asked = visited(unasked, None, RUNS, now=111.0)
    assert isinstance(asked, Job)
    assert (closing_of(unasked).spent, closing_of(asked).spent) == (7.0, 23.0)


def test_a_computer_that_slept_does_not_find_the_time_over() -> None:
    before = at(State.FETCHING_RESULTS, deadline_at=90.0, ending=closing(0.0))
    after = visited(before, None, RUNS, now=95.0 + 86_400)
    assert isinstance(after, Job)
    assert closing_of(after).spent == POLICY.limits.fetch / 2 + 120
    assert not is_parked(after)


OVER = replace(closing(POLICY.bound_seconds), reason=Reason.STOPPED_BY_USER)
SAFE = SavedModel(address="/m", attempt=1)


def test_a_model_that_could_not_be_fetched_stays_on_a_stopped_machine_and_people_are_told() -> None:
    seen = fetching.FetchingView(visit=visit(at(State.FETCHING_RESULTS, ending=OVER)), sighting=RUNS, can_stop=True)
    step = fetching.decide(seen, POLICY)
    assert step.write is not None
    assert (step.write.job.state, is_parked(step.write.job)) == (State.FETCHING_RESULTS, True)
    assert "stationmaster stop job" in step.write.alerts[0].message
    stops = fetching.decide(replace(seen, visit=visit(step.write.job)), POLICY)
    assert stops.then == Park(provider_id="m1")
    waits = fetching.decide(replace(seen, visit=visit(step.write.job), sighting=STOPPED), POLICY)
    assert waits.then is None
    assert waits.write is not None
    assert waits.write.rentals[0].stopped_at == 100.0
    gone = fetching.decide(replace(seen, visit=visit(step.write.job, now=100.0 + 72 * 3600), sighting=STOPPED), POLICY)
    assert gone.write is not None
    ended = gone.write.job
    assert (ended.state, ended.outcome, ended.reason) == (State.RELEASING, Outcome.FAILED, Reason.FETCH_FAILED)
    assert "its model is lost" in str(ended.explanation)


@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        (Reason.FINISHED, Reason.FETCH_FAILED),
        (Reason.STOPPED_BY_USER, Reason.FETCH_FAILED),
        (Reason.HARD_LIMIT, Reason.FETCH_FAILED),
        (Reason.MACHINE_STOPPED, Reason.FETCH_FAILED),
        (Reason.STEP_FAILED, Reason.STEP_FAILED),
        (Reason.CANCELLED_BY_USER, Reason.CANCELLED_BY_USER),
    ],
)
def test_a_model_that_was_never_handed_out_ends_its_job_with_a_reason_that_promises_none(
    ending: Reason, reason: Reason
) -> None:
    note = Parked(at=100.0, why="the model could not be downloaded in 3 tries: no answer", seq=0)
    parked = at(State.FETCHING_RESULTS, ending=replace(OVER, reason=ending, parked=note))
    after = visited(parked, None, STOPPED, now=100.0 + POLICY.sweep.abandon_after)
    assert isinstance(after, Job)
    assert (after.reason, after.state) == (reason, State.RELEASING)
    assert str(after.explanation).startswith("the model could not be downloaded in 3 tries: no answer; ")


def test_a_parked_model_is_kept_until_the_job_s_own_limit_at_least() -> None:
    waiting = replace(OVER, reason=Reason.FINISHED, parked=Parked(at=100.0, why="x", seq=0))
    patient = 100.0 + POLICY.sweep.abandon_after
    parked = at(State.FETCHING_RESULTS, ending=waiting, deadline_at=patient + 1000.0)
    kept = visited(parked, None, STOPPED, now=patient + 999.0)
    assert isinstance(kept, Job)
    assert is_parked(kept)
    assert kept.state is State.FETCHING_RESULTS
    lost = visited(parked, None, STOPPED, now=patient + 1000.0)
    assert isinstance(lost, Job)
    assert lost.state is State.RELEASING


def test_what_was_tried_in_vain_is_told_and_not_a_time_that_nobody_chose() -> None:
    tried = replace(
        at(State.FETCHING_RESULTS, ending=OVER), setbacks=Setbacks(failures=7, problem="rsync: broken pipe")
    )
    seen = fetching.FetchingView(visit=visit(tried), sighting=RUNS, can_stop=True)
    step = fetching.decide(seen, POLICY)
    assert step.write is not None
    note = step.write.job.ending.parked
    assert note is not None
    assert note.why == "the model could not be downloaded in 7 tries: rsync: broken pipe"


def test_a_parked_machine_that_the_provider_no_longer_lists_is_looked_for_as_any_other() -> None:
    parked = at(State.FETCHING_RESULTS, ending=replace(OVER, parked=Parked(at=99.0, why="x", seq=0)))
    missing = Sighting(fate=Fate.MISSING, rental=rental())
    after = visited(parked, None, missing, now=100.0)
    assert isinstance(after, Job)
    assert (is_parked(after), after.machine.absences) == (True, 1)
    gone = visited(after, None, Sighting(fate=Fate.GONE, rental=rental()), now=101.0)
    assert isinstance(gone, Job)
    assert (gone.state, gone.reason) == (State.RELEASING, Reason.FETCH_FAILED)
    assert "the provider reports that the machine is gone" in str(gone.explanation)


def test_with_the_model_safe_the_rest_is_left_when_the_time_is_over() -> None:
    safe = at(State.FETCHING_RESULTS, ending=OVER, model=SAFE)
    after = visited(safe, None, RUNS, now=100.0)
    assert isinstance(after, Job)
    assert (after.state, is_parked(after)) == (State.FINALIZING, False)


def test_a_person_s_further_stop_gives_a_parked_machine_its_whole_time_again() -> None:
    waiting = replace(OVER, parked=Parked(at=50.0, why="x", seq=1))
    parked = at(State.FETCHING_RESULTS, ending=waiting, machine=replace(MACHINE, starts=3))
    asked = replace(parked, desired=Desired.STOP, desired_seq=2)
    step = fetching.decide(fetching.FetchingView(visit=visit(asked), sighting=STOPPED, can_stop=True), POLICY)
    assert step.write is not None
    again = step.write.job
    assert (is_parked(again), closing_of(again).spent, again.machine.starts) == (False, 0.0, 0)
    assert step.write.cleared_alerts == ("parked",)
    starts = fetching.decide(fetching.FetchingView(visit=visit(again), sighting=STOPPED, can_stop=True), POLICY)
    assert isinstance(starts.then, Revive)


def test_a_machine_of_our_own_which_cannot_be_stopped_is_given_up_only_at_the_limit() -> None:
    stopped = at(State.FETCHING_RESULTS, desired=Desired.STOP, ending=OVER)
    seen = fetching.FetchingView(visit=visit(stopped), sighting=RUNS, can_stop=False)
    assert isinstance(fetching.decide(seen, POLICY).then, fetching.TakeInventory)
    late = fetching.decide(replace(seen, visit=visit(replace(stopped, deadline_at=99.0))), POLICY)
    assert late.write is not None
    assert (late.write.job.state, late.write.job.reason) == (State.RELEASING, Reason.FETCH_FAILED)


def test_nothing_is_published_any_more_when_the_time_is_over() -> None:
    policy = Policy(links=("hub",))
    for spent, what in ((0.0, "SendOn"), (policy.bound_seconds, "Conclude")):
        ending = replace(OVER, closing=Closing(spent=spent, at=100.0))
        before = at(State.FINALIZING, ending=ending, model=SAFE)
        seen = finalizing.FinalizingView(visit=visit(before), sighting=RUNS, is_bounded=True)
        assert type(finalizing.decide(seen, policy).then).__name__ == what
        assert type(finalizing.decide(replace(seen, is_bounded=False), policy).then).__name__ == "SendOn"


GPU = CostLine(
    rental_label=rental().label, job_id="job", kind="gpu", rate_per_hour=MicroDollars(360_000), started_at=0.0,
    ended_at=None, amount=MicroDollars(0), source="estimate",
)  # fmt: skip


def test_the_gpu_of_a_stopped_machine_costs_nothing_until_it_is_started_again() -> None:
    (closed,) = costs_as_seen([GPU], STOPPED, now=3600.0)
    assert (closed.ended_at, closed.amount) == (3600.0, 360_000)
    assert costs_as_seen([closed], STOPPED, now=7200.0) == ()
    (again,) = costs_as_seen([closed], RUNS, now=7200.0)
    assert (again.kind, again.started_at, again.so_far(now=7200.0)) == ("gpu-2", 7200.0, 0)
    assert costs_as_seen([closed, again], RUNS, now=7300.0) == ()


@given(st.floats(0.0, 10_000.0))
def test_no_action_is_given_more_time_than_is_left(spent: float) -> None:
    running_out = at(State.FETCHING_RESULTS, ending=closing(spent, at=1.0))
    limit = action_limit(running_out, POLICY, until=POLICY.bound_seconds)
    assert limit is not None
    assert 0 <= limit <= max(0.0, POLICY.bound_seconds - spent)
    assert seconds_left(running_out, until=POLICY.bound_seconds) >= limit
    assert action_limit(at(State.FETCHING_RESULTS), POLICY, until=POLICY.bound_seconds) is None
