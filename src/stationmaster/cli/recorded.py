"""`parse` and `replay`: what recorded output says. The reading itself is imported only when it is wanted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stationmaster.cli.context import JsonOption


def parse(
    log: Annotated[Path, typer.Argument(help="A training log.")],
    framework: Annotated[str, typer.Option(help="The trainer that wrote it.")] = "auto",
    pattern: Annotated[
        list[str] | None,
        typer.Option(
            "--pattern",
            metavar="REGEX",
            help="Also read lines by this; its groups are called step, total_steps, loss, … May be given again.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Read a training log and print how the training stood at its end.

    Examples:

      stationmaster parse output/log.txt

      stationmaster parse train.log --framework kohya --json

      stationmaster parse train.log --pattern 'tick (?P<step>[0-9]+)'
    """
    from stationmaster.cli import parse as reading

    reading.parse(log, framework, as_json, pattern or ())


def replay(
    trace: Annotated[Path, typer.Argument(help="A trace (JSON), or a log whose lines carry times.")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Change a threshold, as in stall.min_window=5m.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per event.")] = False,
) -> None:
    """Run parser and stall watch over a recorded run and print what they would have told, and when.

    Examples:

      stationmaster replay train.log

      stationmaster replay trace.json --json --set stall.min_window=5m
    """
    from stationmaster.cli import replay as replaying

    replaying.replay(trace, as_json, settings)
