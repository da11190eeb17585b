"""GPU memory in the lines of a quote and of a job: what is predicted, what was used."""

from __future__ import annotations

from dataclasses import replace

from stationmaster.cli.job_lines import view_lines
from stationmaster.cli.render import job_json, price_lines, quote_json
from stationmaster.model import Outcome, Quote, Reason, State
from stationmaster.money import ZERO
from stationmaster.station.jobs import JobView
from tests.support.jobs.spine_values import job, rental, spec

PLAIN = spec().quote
PREDICTED = replace(
    PLAIN,
    gpu="RTX 4090",
    gpu_gib=23.99,
    memory_low_gib=20.3,
    memory_expected_gib=21.6,
    memory_high_gib=22.9,
    memory_runs=3,
    memory_basis="from 3 earlier runs",
)


def memory_lines(quote: Quote) -> list[str]:
    return [line for line in price_lines(quote, most_per_hour=ZERO) if line.startswith("  memory")]


def test_the_quote_shows_the_share_of_the_card_and_what_it_rests_on() -> None:
    assert memory_lines(PREDICTED) == [
        "  memory 21.6 GiB of 24 GiB (90 %), between 20.3 and 22.9 GiB, from 3 earlier runs"
    ]
    assert memory_lines(replace(PREDICTED, gpu_gib=None))[0].startswith("  memory 21.6 GiB, between")
    assert quote_json(PREDICTED)["gpu_memory_gib"] == {"low": 20.3, "expected": 21.6, "high": 22.9}


def test_what_is_not_predicted_is_named_and_an_old_quote_shows_nothing() -> None:
    unknown = replace(PLAIN, memory_basis="my-tool@1 has no memory model")
    assert memory_lines(unknown) == ["  memory not predicted: my-tool@1 has no memory model"]
    assert memory_lines(PLAIN) == []
    assert quote_json(PLAIN)["gpu_memory_gib"] is None


def test_a_card_without_a_price_has_no_line_of_cost() -> None:
    lines = list(price_lines(PREDICTED, most_per_hour=None))
    assert [line.split()[0] for line in lines] == ["time", "memory"]


def ended(quote: Quote, *, peak: float | None) -> JobView:
    over = job(spec=spec(quote=quote), state=State.ENDED, outcome=Outcome.COMPLETED, reason=Reason.FINISHED)
    machine = replace(rental(), held_at=1_000.0, gone_at=4_600.0)
    return JobView(
        job=over, now=9_000.0, shown="COMPLETED", stage="", cost=ZERO, rentals=(machine,), costs=(), checkpoints=(),
        alerts=(), access=None, peak_gpu_gib=peak, gpu_gib=24.0,
    )  # fmt: skip


def test_after_the_run_the_job_shows_what_was_used_beside_what_was_predicted() -> None:
    lines = list(view_lines(ended(PREDICTED, peak=21.2)))
    assert "  time      1h on the machine (quoted 1h)" in lines
    assert "  memory    21.2 GiB of 24 GiB (88 %) at the peak (predicted 21.6 GiB)" in lines
    used = job_json(ended(PREDICTED, peak=21.2))["used"]
    assert used == {"rented_hours": 1.0, "gpu_memory_gib": 21.2, "gpu_gib": 24.0}


def test_a_job_of_an_older_version_shows_the_peak_alone() -> None:
    assert "  memory    21.2 GiB of 24 GiB (88 %) at the peak" in view_lines(ended(PLAIN, peak=21.2))
    assert not [line for line in view_lines(ended(PLAIN, peak=None)) if "memory" in line]
