"""The table of moves, the table of reasons, and what follows from both."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.errors import IllegalMove
from stationmaster.lifecycle import (
    MAX_FAILED_AFTER_LOGIN,
    MAX_FAILED_BEFORE_LOGIN,
    MOVES,
    REASONS,
    STAGES,
    TERMINAL,
    Move,
    Payer,
    activity,
    advance,
    concluded,
    counted,
    may_try_again,
    moved,
    progress_shown,
    shown,
    stage,
)
from stationmaster.model import Outcome, Progress, Reason, RentedMachine, State, Watching
from tests.support.jobs.spine_values import job

reasons = st.sampled_from(sorted(Reason))
states = st.sampled_from(sorted(State))


@pytest.mark.parametrize(("state", "move"), sorted(MOVES))
def test_a_move_in_the_table_leads_where_it_says(state: State, move: Move) -> None:
    after = moved(job(state=state, state_since=1.0), move, now=5.0)
    assert (after.state, after.state_since) == (MOVES[state, move], 5.0)


@pytest.mark.parametrize(("state", "move"), sorted(set(product(State, Move)) - MOVES.keys()))
def test_a_move_outside_the_table_is_refused(state: State, move: Move) -> None:
    with pytest.raises(IllegalMove, match=f"{state} cannot take {move}"):
        advance(state, move)


def test_only_an_ended_job_stays_where_it_is() -> None:
    assert {State.ENDED} == TERMINAL


def test_every_state_can_be_reached_and_every_state_leads_to_the_end() -> None:
    def reachable(start: State) -> set[State]:
        found, new = {start}, {start}
        while new:
            new = {target for (source, _), target in MOVES.items() if source in new} - found
            found |= new
        return found

    assert reachable(State.QUEUED) == set(State)
    assert all(State.ENDED in reachable(state) for state in State)


def test_no_state_that_may_hold_a_machine_ends_without_releasing_it() -> None:
    into_the_end = {source for (source, _), target in MOVES.items() if target is State.ENDED}
    assert into_the_end == {State.QUEUED, State.RELEASING}


def test_a_person_can_get_out_of_every_state_before_the_release() -> None:
    leaves = {source for source, move in MOVES if move is Move.GIVE_UP}
    assert leaves == set(State) - {State.RELEASING, State.ENDED}


def test_every_reason_says_what_follows() -> None:
    assert REASONS.keys() == set(Reason)


@pytest.mark.parametrize("reason", sorted(Reason))
def test_what_is_tried_again_was_not_what_the_person_wanted_and_is_not_theirs_to_pay(reason: Reason) -> None:
    consequence = REASONS[reason]
    if consequence.may_try_again:
        assert consequence.outcome in (Outcome.FAILED, Outcome.FAILED_PROVISIONING)
        # Who bids for a machine that can be taken away pays for the time that it was there.
        assert consequence.pays is (Payer.USER if reason is Reason.OUTBID else Payer.NONE)


@given(first=reasons, second=reasons)
def test_an_outcome_once_written_never_changes(first: Reason, second: Reason) -> None:
    once = concluded(job(), first, explanation="first")
    assert concluded(once, second, explanation="second") == once
    assert (once.outcome, once.reason) == (REASONS[first].outcome, first)


@given(st.lists(reasons, max_size=12))
def test_attempts_before_and_after_the_login_are_counted_apart(failures: list[Reason]) -> None:
    current = job(state=State.EXECUTING)
    for reason in failures:
        current = counted(current, reason)
    early = sum(REASONS[reason].outcome is Outcome.FAILED_PROVISIONING for reason in failures)
    assert current.failed_before_login == early
    assert current.failed_after_login == len(failures) - early


@pytest.mark.parametrize(
    ("reason", "limit"),
    [(Reason.MACHINE_NOT_READY, MAX_FAILED_BEFORE_LOGIN), (Reason.MACHINE_LOST, MAX_FAILED_AFTER_LOGIN)],
)
def test_three_attempts_of_a_kind_are_all_there_are(reason: Reason, limit: int) -> None:
    current, attempts = job(state=State.EXECUTING), 1
    while may_try_again(current, reason):
        current, attempts = counted(current, reason), attempts + 1
    assert attempts == limit == 3


def test_failures_before_the_login_do_not_use_up_those_after_it() -> None:
    unlucky = job(state=State.EXECUTING, failed_before_login=2)
    assert may_try_again(unlucky, Reason.MACHINE_LOST)
    assert not may_try_again(unlucky, Reason.NO_OFFER)


@pytest.mark.parametrize("outcome", sorted(Outcome))
@pytest.mark.parametrize("state", [State.RELEASING, State.ENDED])
def test_the_outcome_is_shown_as_soon_as_there_is_one(state: State, outcome: Outcome) -> None:
    assert shown(job(state=state, outcome=outcome, lease_until=1.0, unreachable_since=1.0), now=100.0) == outcome


@pytest.mark.parametrize("state", sorted(set(State) - TERMINAL))
def test_a_lapsed_lease_or_a_silent_machine_shows_as_needing_recovery(state: State) -> None:
    assert shown(job(state=state, lease_until=99.0), now=100.0) == "NEEDS_RECOVERY"
    assert shown(job(state=state, unreachable_since=99.0), now=100.0) == "NEEDS_RECOVERY"
    assert shown(job(state=state, lease_until=101.0), now=100.0) == state
    assert shown(job(state=state), now=100.0) == state


@given(states)
def test_every_state_has_its_place_among_the_ten_stages(state: State) -> None:
    assert len(STAGES) == 10
    assert stage(job(state=state)) in STAGES


@pytest.mark.parametrize("outcome", sorted(Outcome))
def test_only_a_completed_job_ends_in_the_last_stage(outcome: Outcome) -> None:
    logged_in = RentedMachine(label="sm-x-job-1")
    ended = job(state=State.ENDED, outcome=outcome, attempt=1, machine=logged_in)
    assert (stage(ended) == "completed") == (outcome is Outcome.COMPLETED)
    if outcome is not Outcome.COMPLETED:
        assert stage(ended) == "instance terminated"
        assert stage(replace(ended, machine=RentedMachine())) == "claimed"
        assert stage(replace(ended, attempt=0, machine=RentedMachine())) == "queued"


def test_an_attempt_that_is_given_up_stays_where_it_came_to_until_its_machine_is_gone() -> None:
    given_up = job(state=State.RELEASING, attempt=1)
    assert stage(given_up) == "claimed"
    assert stage(replace(given_up, machine=RentedMachine(label="sm-x-job-1"))) == "provisioned"
    assert stage(replace(given_up, watching=Watching(trained=True))) == "training"
    assert stage(given_up, is_released=True) == "instance terminated"


RUNNING = Progress(
    step=40, total_steps=100, loss=0.5, steps_per_second=2.0, eta_seconds=30.0, phase="sampling", phase_since=880.0,
    active_step="train",
)  # fmt: skip


@pytest.mark.parametrize("state", sorted(set(State) - {State.EXECUTING}))
def test_only_a_running_training_has_a_speed_an_eta_and_a_phase(state: State) -> None:
    assert progress_shown(job(state=State.EXECUTING, progress=RUNNING)) == RUNNING
    over = progress_shown(job(state=state, progress=RUNNING))
    assert over == Progress(step=40, total_steps=100, loss=0.5)


@pytest.mark.parametrize(
    ("progress", "said"),
    [
        (RUNNING, "sampling for 2m"),
        (replace(RUNNING, phase="training"), None),
        (replace(RUNNING, phase="failed"), "failed"),
        (replace(RUNNING, phase="saving", phase_since=None), "saving"),
        (Progress(active_step="install"), "step install"),
        (Progress(), None),
    ],
)
def test_what_runs_instead_of_training_steps_is_said(progress: Progress, said: str | None) -> None:
    assert activity(progress, now=1000.0) == said


def test_a_state_written_by_newer_code_can_still_be_looked_at() -> None:
    strange = job(state=State("POLISHING"))
    assert shown(strange, now=0.0) == "POLISHING"
    assert stage(strange)
    with pytest.raises(IllegalMove):
        advance(strange.state, Move.GIVE_UP)
