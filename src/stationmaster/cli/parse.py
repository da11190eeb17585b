"""`stationmaster parse LOG`: the summary of a training log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from stationmaster.cli.console import PrintableConsole
from stationmaster.cli.context import JsonOption, given_path, print_json
from stationmaster.cli.log_files import read_chunks
from stationmaster.errors import ConfigInvalid
from stationmaster.parsers import FAMILIES, LogReader, Scope, Summary
from stationmaster.parsers.patterns import checked_pattern
from stationmaster.parsers.registry import AUTO, find_family


def parse(
    log: Annotated[Path, typer.Argument(parser=given_path, help="Training log.")],
    framework: Annotated[str, typer.Option(help="Trainer that wrote it.")] = AUTO,
    pattern: Annotated[
        list[str] | None,
        typer.Option(
            "--pattern",
            metavar="REGEX",
            help="Also match lines with this; its groups are named step, total_steps, loss and so on. Repeatable.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Summarize a training log: step, loss, checkpoints, errors.

    Examples:

      stationmaster parse output/log.txt

      stationmaster parse train.log --framework kohya --json

      stationmaster parse train.log --pattern 'tick (?P<step>[0-9]+)'
    """
    summary = read_log(log, framework=framework, patterns=pattern or ())
    if as_json:
        print_json(summary.as_json(), indent=None)
    else:
        PrintableConsole().print(as_table(summary))


def read_log(log: Path, *, framework: str = AUTO, patterns: Sequence[str] = ()) -> Summary:
    """Read a whole log. Raises UserError, also for an unknown framework or a pattern that cannot work."""
    if framework != AUTO and find_family(framework) is None:
        names = ", ".join(family.name for family in FAMILIES)
        raise ConfigInvalid(f"unknown log format {framework}", hint=f"use {AUTO} or one of {names}")
    reader = LogReader(framework, patterns=[checked_pattern(one) for one in patterns])
    for chunk in read_chunks(log):
        reader.feed(chunk)
    return reader.summary()


def as_table(summary: Summary) -> Table:
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in _rows(summary):
        table.add_row(name, Text(value))  # Text: a path with brackets is not markup
    return table


def _rows(summary: Summary) -> list[tuple[str, str]]:
    rows = [
        ("trainer", summary.framework or "unknown"),
        ("phase", summary.phase or "unknown"),
        (
            "step",
            _of(summary.step, summary.total_steps) + (" of the epoch" if summary.step_scope == Scope.EPOCH else ""),
        ),
        ("epoch", _of(summary.epoch, summary.total_epochs)),
        ("loss", _number(summary.loss)),
        ("learning rate", _number(summary.learning_rate)),
        ("steps per second", _number(summary.steps_per_second)),
        ("time left", _duration(summary.eta_seconds)),
    ]
    rows += [("checkpoint", name) for name in summary.checkpoints]
    rows += [("error" if error.fatal else "problem", f"{error.kind}: {error.message}") for error in summary.errors]
    return rows


def _of(count: float | None, total: int | None) -> str:
    counted = "–" if count is None else f"{count:g}" if count % 1 else f"{count:.0f}"
    return counted if total is None else f"{counted} of {total}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"


def _duration(seconds: float | None) -> str:
    return "–" if seconds is None else str(timedelta(seconds=round(min(seconds, 86_400 * 36_500))))
