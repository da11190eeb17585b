"""Jobs side by side, as a table."""

from __future__ import annotations

import math

from stationmaster.cli.compare import comparison_lines
from stationmaster.model import Progress
from stationmaster.money import MicroDollars
from stationmaster.station.comparison import Comparison, compare
from stationmaster.station.jobs import JobView
from tests.support.jobs.spine_values import job, spec
from tests.support.jobs.stored_jobs import machine_of


def view(job_id: str, *, loss: float = 0.25, **parameters: object) -> JobView:
    progress = Progress(step=20, total_steps=20, first_loss=1.5, loss=loss, steps_per_second=2.0)
    compared = job(spec=spec(job_id, parameters=parameters), progress=progress)
    machine = machine_of(job_id, held_at=1_000.0, gone_at=4_600.0)
    return JobView(
        job=compared, now=9_000.0, shown="COMPLETED", stage="completed", cost=MicroDollars(360_000),
        rentals=(machine,), costs=(), checkpoints=(), alerts=(), access=None, peak_gpu_gib=21.23, gpu_gib=24.0,
    )  # fmt: skip


def compared(*views: JobView) -> Comparison:
    return compare(views)


def test_a_row_holds_what_differs_or_came_of_it_and_unknown_rows_are_left_out() -> None:
    lines = list(
        comparison_lines(compared(view("one", steps=20, rank=8), view("two", steps=30, rank=8, loss=math.nan)))
    )
    rows = {line.split()[0]: line.split()[1:] for line in lines}
    assert rows["job"] == ["one", "two"]
    assert rows["steps"] == ["20", "30"], "the last row of that name is the parameter"
    assert rows["GPU"] == ["memory", "21.2", "of", "24", "GiB", "21.2", "of", "24", "GiB"]
    assert any(line.split() == ["last", "loss", "0.25", "nan"] for line in lines)
    assert any(line.split() == ["time", "1h", "1h"] for line in lines)
    assert not [line for line in lines if line.startswith(("health", "trigger"))]
    assert lines[-1] == "1 other parameter is the same"


def test_a_table_is_never_wider_than_it_may_be_and_every_job_is_in_it() -> None:
    many = [view(f"job-{number}", a_parameter_with_a_very_long_name="x" * number * 9) for number in range(10)]
    for width in (80, 120, 300):
        lines = list(comparison_lines(compared(*many), width=width))
        assert max(len(line) for line in lines) <= width
        assert [word for line in lines if line.startswith("job ") for word in line.split()[1:]] == [
            f"job-{number}" for number in range(10)
        ]


def test_jobs_with_the_same_parameters_say_so() -> None:
    assert (
        list(comparison_lines(compared(view("one", steps=1), view("two", steps=1))))[-1]
        == "the parameters are the same"
    )
