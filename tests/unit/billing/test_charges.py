"""Who pays what, by the reason of an attempt's end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.control.billing.charges import charge, cost_of_attempt
from stationmaster.lifecycle import REASONS, Payer
from stationmaster.model import CostLine, Event, Reason
from stationmaster.money import MicroDollars
from stationmaster.notify.templates import Facts, text_of_event
from stationmaster.settings import BillingSettings
from tests.support.jobs.spine_values import job, rental

HELD = MicroDollars(1_000_000)
DOLLARS = BillingSettings()
POINTS = BillingSettings(unit="points")
amounts = st.integers(min_value=0, max_value=10**13).map(MicroDollars)


@pytest.mark.parametrize("reason", [reason for reason in Reason if REASONS[reason].pays is Payer.NONE])
def test_what_is_our_fault_or_used_no_gpu_costs_nothing(reason: Reason) -> None:
    assert charge(reason, held=HELD, actual=MicroDollars(700_000), billing=DOLLARS) == 0


@pytest.mark.parametrize("reason", list(Reason))
def test_where_no_machine_was_rented_nothing_is_charged(reason: Reason) -> None:
    assert charge(reason, held=HELD, actual=MicroDollars(0), billing=DOLLARS) == 0


@pytest.mark.parametrize("reason", [Reason.FINISHED, Reason.STALLED, Reason.STEP_FAILED, Reason.STOPPED_BY_USER])
def test_what_a_training_cost_is_charged_and_no_more_than_was_held(reason: Reason) -> None:
    assert charge(reason, held=HELD, actual=MicroDollars(123_457), billing=DOLLARS) == 123_457
    assert charge(reason, held=HELD, actual=MicroDollars(9_000_000), billing=DOLLARS) == HELD


def test_who_cancels_gets_nine_tenths_back_or_what_is_left_whichever_is_less() -> None:
    assert charge(Reason.CANCELLED_BY_USER, held=HELD, actual=MicroDollars(1), billing=DOLLARS) == 100_000
    assert charge(Reason.CANCELLED_BY_USER, held=HELD, actual=MicroDollars(400_000), billing=DOLLARS) == 400_000


def test_points_are_charged_whole_and_rounded_up() -> None:
    assert charge(Reason.FINISHED, held=HELD, actual=MicroDollars(123_457), billing=POINTS) == 123_500


@given(st.sampled_from(list(Reason)), amounts, amounts, st.sampled_from([DOLLARS, POINTS]))
def test_a_charge_is_never_negative_and_never_above_the_hold(
    reason: Reason, held: MicroDollars, actual: MicroDollars, billing: BillingSettings
) -> None:
    assert 0 <= charge(reason, held=held, actual=actual, billing=billing) <= held


def test_a_surplus_machine_is_nobody_s_charge() -> None:
    own, twin, before = rental(), rental(label="twin", surplus=True), rental(label="before", attempt=0)
    lines = [
        CostLine(
            rental_label=one.label, job_id="job", kind=kind, rate_per_hour=MicroDollars(1), started_at=0.0,
            ended_at=1.0, amount=MicroDollars(amount), source="estimate",
        )
        for one, kind, amount in ((own, "gpu", 50), (own, "disk", 7), (twin, "gpu", 1_000), (before, "gpu", 30_000))
    ]  # fmt: skip
    assert cost_of_attempt(1, lines, [own, twin, before]) == 57


def test_the_owner_reads_what_was_charged_and_what_came_back() -> None:
    event = Event(seq=1, job_id="job", job_version=1, kind="settled", payload={"said": "$1.00 came back"}, at=1.0)
    words = text_of_event(event, job(), Facts())
    assert words is not None
    assert (words.kind, words.text) == ("settled", "🧾 Credits settled\n\nJob: cats\nCredits: $1.00 came back")
