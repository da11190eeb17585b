"""An analysis as lines for a terminal or a pipe: the summary, then what to change, then the log's errors."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from stationmaster.analysis.report import Evidence, Health, LogError, Recommendation, Report, Summary
from stationmaster.durations import format_duration
from stationmaster.printable import one_line

_INDENT = "   "
_LONGEST_VALUE = 60
_NOTHING = {Health.GOOD: "Nothing to change.", Health.UNKNOWN: "Too little was recorded to judge this training."}
_POOLS = {"gpu": "GPU memory", "system": "system memory", "container": "memory of the container"}


def summary_line(summary: Summary) -> str:
    """The run in one line: `Critical  119 GB of 120 GB (99 %)  281 of 1000 steps  27.5 min`."""
    parts = [summary.health_score.value.capitalize()]
    if summary.peak_memory_gb is not None:
        parts.append(_memory(summary.peak_memory_gb, summary.total_memory_gb))
    if summary.steps_completed is not None:
        total = f" of {summary.total_steps}" if summary.total_steps else ""
        parts.append(f"{summary.steps_completed}{total} steps")
    if summary.duration_minutes is not None:
        parts.append(_minutes(summary.duration_minutes))
    return "  ".join(parts)


def analysis_lines(report: Report, *, verbose: bool = False) -> Iterator[str]:
    """Yield the lines, as wide as the terminal, or 80 characters in a pipe. `verbose` adds stack traces."""
    width = max(40, shutil.get_terminal_size((80, 24)).columns)
    yield summary_line(report.summary)
    yield from _facts(report.summary)
    for number, each in enumerate(report.recommendations, start=1):
        yield ""
        yield from _recommendation(number, each, width)
    if not report.recommendations:
        yield ""
        yield _NOTHING.get(report.health, "No change to recommend.")
    if report.log_errors:
        yield ""
        yield "Errors and warnings in the log"
        for error in report.log_errors:
            yield from _log_error(error, width, verbose=verbose)
        if not verbose and any(error.traceback for error in report.log_errors):
            yield f"{_INDENT}(--verbose prints the stack traces)"
    if report.notes:
        yield ""
    for note in report.notes:
        yield from _wrapped(f"note: {note}", width, "      ")


def _facts(summary: Summary) -> Iterator[str]:
    ended = "The training reached its end." if summary.training_completed else "The training did not reach its end."
    pool = _POOLS.get(summary.memory_pool or "")
    yield f"{ended} Memory is the {pool}." if pool and summary.peak_memory_gb is not None else ended


def _recommendation(number: int, each: Recommendation, width: int) -> Iterator[str]:
    indent = " " * len(f"{number}. ")
    yield from _wrapped(f"{number}. {each.severity.value.upper()}  {each.title}", width, indent)
    yield from _wrapped(f"{indent}{each.action}", width, indent)
    if each.impact:
        yield from _wrapped(f"{indent}Impact: {each.impact}", width, indent)
    if each.config_path:
        change = f"{_value(each.current_value)} -> {_value(each.recommended_value)}"
        yield f"{indent}{one_line(each.config_path)}: {change}"
    for evidence in each.evidence:
        yield from _wrapped(f"{indent}- {_evidence(evidence)}", width, f"{indent}  ")


def _evidence(evidence: Evidence) -> str:
    unit = f" {evidence.unit}" if evidence.unit else ""
    limit = "" if evidence.threshold is None else f" (threshold {_value(evidence.threshold)}{unit})"
    return f"{evidence.what}: {_value(evidence.value)}{unit}{limit}"


def _log_error(error: LogError, width: int, *, verbose: bool) -> Iterator[str]:
    facts = [error.level]
    if error.timestamp is not None:
        facts.append(_clock(error.timestamp))
    if error.memory_at_time_gb is not None:
        facts.append(f"{_number(error.memory_at_time_gb)} GB in use")
    if error.count > 1:
        facts.append(f"{error.count} times")
    yield f"{_INDENT}{'  '.join(facts)}"
    yield from _wrapped(f"{_INDENT}{_INDENT}{error.message}", width, _INDENT * 2)
    if verbose and error.traceback:
        for line in error.traceback.splitlines():
            yield f"{_INDENT}{_INDENT}| {one_line(line)}"


def _clock(seconds: float) -> str:
    """A time by the machine's clock, in the time zone of this computer."""
    try:
        return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        return f"{seconds:g} s"


def _memory(peak: float, total: float | None) -> str:
    if not total:
        return f"{_number(peak)} GB"
    return f"{_number(peak)} GB of {_number(total)} GB ({100 * peak / total:.0f} %)"


def _number(value: float) -> str:
    """
    >>> _number(119.4), _number(23.99), _number(7.25), _number(0.031)
    ('119', '24', '7.2', '0.031')
    """
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.2g}" if value < 1 else f"{value:.3g}" if value >= 10 else f"{value:.1f}"


def _minutes(minutes: float) -> str:
    return f"{minutes:.1f} min" if minutes < 120 else format_duration(minutes * 60)


def _value(value: Any) -> str:
    """A value of a config or a measurement, short enough for a line."""
    if isinstance(value, float):
        return f"{value:.4g}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = one_line(text)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(
        one_line(text), width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )
