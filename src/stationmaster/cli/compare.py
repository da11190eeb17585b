"""`stationmaster compare`: jobs side by side."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import typer

from stationmaster.cli.context import JsonOption, named, options_of, print_json, print_lines, station_of
from stationmaster.durations import format_duration
from stationmaster.model.advice import text_of
from stationmaster.money import format_dollars
from stationmaster.printable import one_line
from stationmaster.station.comparison import ComparedJob, Comparison

_WIDTH = 80
_LEAST_COLUMN = 16  # a table with narrower columns is printed in parts
_UNKNOWN = "-"


def _each_named(references: list[str]) -> list[str]:
    check = named("job", "jobs --all")
    for reference in references:
        check(reference)
    return references


def compare(
    context: typer.Context,
    jobs: Annotated[
        list[str],
        typer.Argument(metavar="JOB", help="Two to ten jobs, by id (or its beginning) or name.", callback=_each_named),
    ],
    as_json: JsonOption = False,
) -> None:
    """Compare jobs: what differed, and what came of it.

    Parameters with the same value in all the jobs are left out.

    Examples:

      stationmaster compare 7f3k2q9a 8g4m3r2b

      stationmaster compare cats dogs birds --json
    """
    with station_of(context, wake=False) as station:
        found = station.jobs.compare(jobs)
    if as_json or options_of(context).as_json:
        from stationmaster.station.wire.comparison import ComparisonDocument  # pydantic, which text does not need

        return print_json(ComparisonDocument.of(found).model_dump(mode="json"))
    width = shutil.get_terminal_size((_WIDTH, 24)).columns if sys.stdout.isatty() else _WIDTH
    print_lines(comparison_lines(found, width=max(width, _WIDTH)))
    return None


def comparison_lines(found: Comparison, *, width: int = _WIDTH) -> Iterator[str]:
    """A table with a column for each job; below each other where they do not fit side by side."""
    rows = [
        *((name, [show(job) for job in found.jobs]) for name, show in _ROWS),
        *((f"  {name}", [_value(value) for value in values]) for name, values in found.differing.items()),
    ]
    rows = [(title, cells) for title, cells in rows if set(cells) != {_UNKNOWN}]
    titles = min(max(len(title) for title, _ in rows), width // 4)
    at_once = max(1, (width - titles) // (_LEAST_COLUMN + 2))
    for first in range(0, len(found.jobs), at_once):
        if first:
            yield ""
        shown = range(first, min(first + at_once, len(found.jobs)))
        column = (width - titles) // len(shown) - 2
        for title, cells in rows:
            texts = [_cut(cells[index], column) for index in shown]
            yield "  ".join([f"{_cut(title, titles):<{titles}}", *(f"{text:<{column}}" for text in texts)]).rstrip()
    if found.same_parameters:
        which = "other parameter is" if found.same_parameters == 1 else "other parameters are"
        yield f"{found.same_parameters} {which} the same" if found.differing else "the parameters are the same"


def _hours(hours: float) -> str:
    return format_duration(hours * 3600) if hours else _UNKNOWN


def _steps(job: ComparedJob) -> str:
    return _UNKNOWN if job.step is None else f"{job.step} of {job.total_steps or '?'}"


def _memory(job: ComparedJob) -> str:
    size = f" of {job.gpu_gib:.3g}" if job.gpu_gib else ""
    return _UNKNOWN if job.peak_gpu_gib is None else f"{job.peak_gpu_gib:.1f}{size} GiB"


def _number(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{value:.4g}"


_ROWS: Sequence[tuple[str, Callable[[ComparedJob], str]]] = (
    ("job", lambda job: job.id),
    ("name", lambda job: one_line(job.name)),
    ("outcome", lambda job: job.shown),
    ("reason", lambda job: job.reason or _UNKNOWN),
    ("health", lambda job: job.health or _UNKNOWN),
    ("recipe", lambda job: job.recipe),
    ("dataset", lambda job: one_line(job.dataset)),
    ("pack", lambda job: job.dataset_sha256[:12]),
    ("images", lambda job: str(job.images)),
    ("trigger", lambda job: one_line(job.trigger or _UNKNOWN)),
    ("GPU", lambda job: job.gpu or _UNKNOWN),
    ("steps", _steps),
    ("steps/s", lambda job: _number(job.steps_per_second)),
    ("first loss", lambda job: _number(job.first_loss)),
    ("last loss", lambda job: _number(job.last_loss)),
    ("GPU memory", _memory),
    ("time quoted", lambda job: _hours(job.quoted_hours)),
    ("time", lambda job: _hours(job.hours)),
    ("cost quoted", lambda job: format_dollars(job.quoted_cost)),
    ("cost", lambda job: format_dollars(job.cost)),
)


def _value(value: Any) -> str:
    return _UNKNOWN if value is None else one_line(text_of(value))


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
