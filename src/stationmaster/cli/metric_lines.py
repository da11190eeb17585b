"""The series of a run as lines for a terminal or a pipe: its numbers, and each series as a row of blocks."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from stationmaster.cli.sparklines import levels
from stationmaster.durations import format_duration
from stationmaster.printable import one_line
from stationmaster.series.run_series import DrawnSeries
from stationmaster.series.sparkline import sparkline
from stationmaster.series.summary import GpuSummary, RunSummary, SeriesSummary

_TITLE = "SERIES"
_NAME_WIDTH = 30
_NUMBER_WIDTH = 9
_LEAST_LINE = 8
_GOOD_LINE = 16
_NUMBERS = ("first", "last", "lowest", "highest")
_FEW_NUMBERS = _NUMBERS[1:]  # where the line would be too short otherwise


def metric_lines(summary: RunSummary, drawn: Sequence[DrawnSeries]) -> Iterator[str]:
    """Yield the lines; they are as wide as the terminal, or 80 characters in a pipe."""
    yield from _run_lines(summary)
    if not drawn:
        yield "no values"
        return
    figures = {figure.name: figure for figure in summary.series}
    constant = [series.name for series in drawn if len(drawn) > 1 and _is_constant(figures.get(series.name))]
    drawn = [series for series in drawn if series.name not in constant]
    yield from _table(drawn, figures)
    if constant:
        yield ""
        texts = [f"{one_line(name)} {number_text(figures[name].last)}" for name in constant]
        yield from textwrap.wrap(f"Constant: {', '.join(texts)}", _width(), break_on_hyphens=False)


def _table(drawn: Sequence[DrawnSeries], figures: Mapping[str, SeriesSummary]) -> Iterator[str]:
    if not drawn:
        return
    names = [one_line(series.name) for series in drawn]
    name_width = min(_NAME_WIDTH, max(map(len, [_TITLE, *names])))
    room = _width() - name_width - 3
    chosen = _NUMBERS if room - len(_NUMBERS) * _NUMBER_WIDTH >= _GOOD_LINE else _FEW_NUMBERS
    headings = "".join(f"{name.upper():>{_NUMBER_WIDTH}}" for name in chosen)
    line_width = max(_LEAST_LINE, room - len(headings))
    yield ""
    yield f"{_TITLE:<{name_width}} {headings}"
    for series, name in zip(drawn, names, strict=True):
        found = figures.get(series.name)
        values = () if found is None else [getattr(found, name) for name in chosen]
        shown = "".join(f"{number_text(value):>{_NUMBER_WIDTH}}" for value in values) or " " * len(headings)
        line = sparkline(series.points, width=line_width, levels=levels())
        yield f"{_cut(name, name_width):<{name_width}} {shown}  {line}".rstrip()


def number_text(value: float) -> str:
    """Return a value in at most eight characters.

    >>> [number_text(value) for value in (0.123456, 1e-4, 1234567.0, 20.0, -3.5e-12, 0.0)]
    ['0.1235', '0.0001', '1234567', '20', '-3.5e-12', '0']
    """
    if value == int(value) and abs(value) < 1e7:
        return str(int(value))
    return f"{value:.4g}" if len(f"{value:.4g}") <= 8 else f"{value:.2g}"


def _is_constant(figure: SeriesSummary | None) -> bool:
    return figure is not None and figure.lowest == figure.highest


def _run_lines(summary: RunSummary) -> Iterator[str]:
    if summary.steps:
        times = ""
        if summary.began_at is not None and summary.last_at is not None:
            times = f", within {format_duration(summary.last_at - summary.began_at)}"
        yield f"  steps      {summary.first_step} to {summary.last_step}, {summary.steps} recorded{times}"
    if summary.step_time_median is not None and summary.step_time_p95 is not None:
        median, slow = _seconds(summary.step_time_median), _seconds(summary.step_time_p95)
        yield f"  step time  {median} (median), {slow} (95th percentile)"
    for gpu in summary.gpus:
        yield f"  GPU {gpu.index:<6} {_gpu_text(gpu)}"
    if summary.memory_peak_gb is not None:
        yield f"  memory     peak {_of(summary.memory_peak_gb, summary.memory_total_gb)} GB"
    if summary.events:
        told = ", ".join(f"{count} {one_line(kind)}" for kind, count in summary.events)
        yield from textwrap.wrap(told, _width(), initial_indent="  events     ", subsequent_indent=" " * 13)


def _gpu_text(gpu: GpuSummary) -> str:
    words = [one_line(gpu.name)] if gpu.name else []
    if gpu.memory_peak_gb is not None:
        words.append(f"peak {_of(gpu.memory_peak_gb, gpu.memory_total_gb)} GB")
    if gpu.utilization_mean_percent is not None:
        words.append(f"{gpu.utilization_mean_percent:.0f} % busy")
    if gpu.temperature_peak_c is not None:
        words.append(f"peak {gpu.temperature_peak_c:.0f} C")
    return ", ".join(words) or "no values"


def _of(part: float, total: float | None) -> str:
    return f"{part:.1f}" if total is None else f"{part:.1f} of {total:.1f}"


def _seconds(value: float) -> str:
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"


def _cut(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[: width - 2]}.."


def _width() -> int:
    return max(40, shutil.get_terminal_size().columns)
