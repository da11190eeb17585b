"""`show` fits on one screen whatever a job has been through, and what it leaves out it counts."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest

from stationmaster.cli.job_lines import view_lines
from stationmaster.cli.sparklines import loss_text
from stationmaster.lifecycle import shown, stage
from stationmaster.model import Alert, Checkpoint, Outcome, Progress, Reason, RunHealth, SavedModel, State
from stationmaster.money import MicroDollars
from stationmaster.station.jobs import JobView
from tests.support.jobs.spine_values import job, rental, spec

NOW = 100_000.0
TREND = [1.0, 0.5, 0.25, 0.125, 0.1]


def view(**fields: Any) -> JobView:
    values = {"state": State.ENDED, "outcome": Outcome.COMPLETED, "reason": Reason.FINISHED, "attempt": 1, **fields}
    found = job(created_at=NOW - 600, ended_at=NOW - 60, **values)
    return JobView(
        job=found, now=NOW, shown=shown(found, now=NOW), stage=stage(found), cost=MicroDollars(420_000), rentals=(),
        costs=(), checkpoints=(), alerts=(), access=None,
    )  # fmt: skip


def eventful() -> JobView:
    """After five machines, with long texts, many checkpoints and alerts."""
    found = view(
        outcome=Outcome.FAILED,
        reason=Reason.STEP_FAILED,
        explanation="step train failed with exit code 1 (try 2): " + "the disk of the machine is full; " * 12,
        progress=Progress(step=40, total_steps=400, loss=0.1, first_loss=1.0),
        model=SavedModel(address="/home/ann/jobs/x/output/000040.safetensors"),
    )
    rentals = tuple(
        replace(rental(), label=f"sm-a-b-{number}", provider_id=str(number), held_at=1.0, gone_at=2.0)
        for number in range(5)
    )
    points = tuple(
        Checkpoint(attempt=1, path=f"{step}", kind="checkpoint", size=1, step=step, verified_at=1.0,
                   location=f"/home/ann/jobs/x/output/{step:06}.safetensors")
        for step in range(10, 41, 5)
    )  # fmt: skip
    alerts = tuple(Alert(kind="stall", message=f"no step for {number} min; " * 5) for number in range(9))
    health = RunHealth(attempt=1, health="critical", headline="the disk was full " * 8)
    return replace(found, rentals=rentals, checkpoints=points, alerts=alerts, health=health)


def test_an_eventful_job_fits_on_a_screen_of_80_by_24() -> None:
    lines = view_lines(eventful(), trend=TREND, width=80)
    assert len(lines) < 24
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    for part in ("6 more; --all lists them", "4 more, gone; --all lists them", "more; --all lists them", "… (--all)"):
        assert part in text
    assert "next      stationmaster logs " in text
    assert "loss      1.0000 → 0.1000  █" in text


def test_all_of_it_is_there_where_it_is_asked_for() -> None:
    lines = view_lines(eventful(), trend=TREND, whole=True, width=80)
    text = "\n".join(lines)
    assert len(lines) > 24
    assert "--all" not in text
    assert all(f"({each.label})" in text for each in eventful().rentals)
    assert all(str(one.location) in text for one in eventful().checkpoints)


def test_a_machine_that_may_still_bill_is_never_left_out() -> None:
    found = eventful()
    bills = replace(found.rentals[1], gone_at=None)
    text = "\n".join(view_lines(replace(found, rentals=(found.rentals[0], bills, *found.rentals[2:])), width=80))
    assert f"({bills.label})" in text
    assert "3 more, gone" in text


def test_in_a_pipe_a_fact_is_one_line_however_long() -> None:
    reason = [line for line in view_lines(eventful()) if line.startswith("  reason")]
    assert len(reason) == 1
    assert len(reason[0]) > 300


def test_times_are_relative_and_the_cost_stands_against_the_quote() -> None:
    quote = replace(spec().quote, cost_expected=MicroDollars(500_000))
    lines = view_lines(view(spec=replace(spec(), quote=quote)))
    assert "  submitted 10 min ago, ended 1 min ago" in lines
    assert "  cost      $0.42 (quoted $0.50, 16 % less)" in lines
    dear = replace(view(spec=replace(spec(), quote=quote)), cost=MicroDollars(1_500_000))
    assert "  cost      $1.50 (quoted $0.50, 3.0 times that)" in view_lines(dear)


def test_what_to_do_next_depends_on_the_outcome() -> None:
    def commands(found: JobView) -> list[str]:
        return [line.split("stationmaster ")[1] for line in view_lines(found) if line.startswith("  next")]

    name = view().job.id
    saved = {"model": SavedModel(address="/x/cats.safetensors")}
    assert commands(view(**saved)) == [f"pull {name} ./{view().job.spec.name}"]
    assert commands(view(outcome=Outcome.INCOMPLETE, **saved))[1] == f"retry {name} --resume"
    assert commands(view(outcome=Outcome.FAILED)) == [f"logs {name} --errors", f"retry {name}"]
    assert commands(view(outcome=Outcome.CANCELLED)) == [f"retry {name}"]
    assert commands(view(state=State.EXECUTING, outcome=None, reason=None)) == [f"watch {name}", f"logs {name} -f"]
    assert not any(line.startswith("  next") for line in view_lines(view(), with_next=False))


@pytest.mark.parametrize(
    ("encoding", "line"), [("utf-8", "1.0000 → 0.1000  █▄▂▁▁"), ("ascii", "1.0000 -> 0.1000  #~.__")]
)
def test_a_loss_is_drawn_in_what_the_terminal_can_show(encoding: str, line: str) -> None:
    terminal = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    assert loss_text(TREND, first=None, last=None, width=40, stream=terminal) == line


def test_a_loss_without_a_picture_is_its_two_values_and_an_unknown_one_is_nothing() -> None:
    assert loss_text([], first=0.5, last=0.25, width=40) == "0.5000 → 0.2500"
    assert loss_text(TREND, first=None, last=None, width=18) == "1.0000 → 0.1000"
    assert loss_text([], first=None, last=None, width=40) is None
