"""`stationmaster replay TRACE`: run the stall detector over a recorded run, with other thresholds if wanted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from stationmaster.cli.context import given_path, json_option, print_json, print_lines
from stationmaster.cli.log_files import read_chunks
from stationmaster.durations import format_duration
from stationmaster.errors import ConfigInvalid, UserError
from stationmaster.parsers import LogReader
from stationmaster.parsers.registry import AUTO, find_family
from stationmaster.watch.escalation import StallEvent
from stationmaster.watch.policy import StallPolicy
from stationmaster.watch.replay import Trace, replay_trace
from stationmaster.watch.stillness import MachineMoment
from stationmaster.watch.timestamps import timed_pieces


class _TraceConfig(BaseModel):
    model_config = ConfigDict(extra="ignore")

    total_steps: int | None = None
    grace_s: float = Field(default=900.0, ge=0)
    poll_s: float = Field(default=60.0, ge=1)
    end_t: float | None = None


class _TraceFile(BaseModel):
    """A recorded trace as JSON: chunks of [seconds, text], samples of [seconds, readings], the watch's settings."""

    model_config = ConfigDict(extra="ignore")

    framework: str = AUTO
    config: _TraceConfig = _TraceConfig()
    chunks: list[tuple[float, str]]
    samples: list[tuple[float, dict[str, Any]]] = []


def replay(
    trace: Annotated[
        Path, typer.Argument(parser=given_path, help="Trace (JSON), or a log whose lines start with times.")
    ],
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Change a threshold, e.g. stall.min_window=5m.")
    ] = None,
    as_json: Annotated[bool, json_option("Print one JSON object per event.")] = False,
) -> None:
    """Replay a recorded run through the stall detector.

    Prints what the log parser and the stall detector report, with times.

    Examples:

      stationmaster replay train.log

      stationmaster replay trace.json --json --set stall.min_window=5m
    """
    recorded, policy = read_trace(trace)
    events = replay_trace(recorded, _reader(recorded), policy.changed(_read_settings(settings or [])))
    if as_json:
        for event in events:
            print_json(event_json(event), indent=None)
    else:
        _print_events(list(events), recorded.end)


def read_trace(path: Path) -> tuple[Trace, StallPolicy]:
    """Read a trace or a log. Raises NotFound, or UserError for a file that is neither."""
    text = b"".join(read_chunks(path)).decode("utf-8", "replace")  # read_text would turn each redraw into a line
    if text.lstrip().startswith("{") and '"chunks"' in text:
        return _from_json(path, text)
    chunks = timed_pieces(text)
    if not chunks:
        hint = "record one with `ts` from moreutils: python train.py 2>&1 | ts '%.s'"
        raise UserError(f"no line of {path} starts with a time", hint=hint)
    return Trace(chunks=chunks, end=chunks[-1][0]), StallPolicy()


def event_json(event: StallEvent) -> dict[str, Any]:
    """One event as JSON; names are stable."""
    return {"t": event.at, "event": event.kind, **event.analysis.as_json()}


def _from_json(path: Path, text: str) -> tuple[Trace, StallPolicy]:
    try:
        file = _TraceFile.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise UserError(f"{path} is not a trace: {place}: {first['msg']}") from error
    chunks = sorted(file.chunks, key=lambda chunk: chunk[0])
    last = chunks[-1][0] if chunks else 0.0
    try:
        samples = [(at, MachineMoment.from_json(at, readings)) for at, readings in file.samples]
    except (TypeError, ValueError) as error:
        raise UserError(f"{path} is not a trace: samples: {error}") from error
    trace = Trace(
        chunks=chunks,
        samples=sorted(samples, key=lambda sample: sample[0]),
        end=last if file.config.end_t is None else file.config.end_t,
        poll=file.config.poll_s,
        total_steps=file.config.total_steps,
        framework=file.framework,
    )
    return trace, StallPolicy(grace=file.config.grace_s)


def _reader(trace: Trace) -> LogReader:
    framework = trace.framework if find_family(trace.framework) else AUTO
    return LogReader(framework, total_steps=int(trace.total_steps) if trace.total_steps else None)


def _read_settings(settings: Sequence[str]) -> dict[str, str]:
    values = {}
    for setting in settings:
        name, sign, value = setting.partition("=")
        if not sign or not name.startswith("stall."):
            raise ConfigInvalid(f"{setting!r} is not a threshold", hint="write --set stall.min_window=5m")
        values[name.removeprefix("stall.")] = value
    return values


def _print_events(events: Sequence[StallEvent], end: float) -> None:
    for event in events:
        print_lines([f"{format_duration(event.at):>8}  {event.kind.replace('_', ' '):<14}  {event.analysis.reason}"])
    if not events:
        typer.echo(f"no stall in {format_duration(end)}")
