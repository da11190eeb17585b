"""`sweep`, `instances`: every machine that may bill, ours or not."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from stationmaster.cli.context import JsonOption, options_of, print_json, station_of
from stationmaster.errors import UserError
from stationmaster.station.base import Station
from stationmaster.station.instances import Act, Fleet, Report


def sweep(
    context: typer.Context,
    force: Annotated[bool, typer.Option("--force", help="Do it; without this only tell.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="End every machine of this installation and cancel their jobs.")
    ] = False,
    foreign: Annotated[
        bool, typer.Option("--include-foreign", help="With --all: machines that are not Stationmaster's, too.")
    ] = False,
    installation: Annotated[
        str | None, typer.Option(help="End every machine of another installation.", show_default=False)
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", help="How many machines will end, instead of being asked.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Find machines that bill although nobody needs them. Tells only, unless --force is given.

    With --all or --installation the number of machines is asked for, and they end at once with what is on them.

    Examples:

      stationmaster sweep

      stationmaster sweep --force
    """
    as_json = as_json or options_of(context).as_json
    with station_of(context, wake=False) as station:
        if everything or installation:
            fleet = Fleet(installation=installation or None, with_foreign=foreign)
            acted, report = _end(station, fleet, count)
        elif force:
            acted, report = True, station.instances.sweep()
        else:
            acted, report = False, station.instances.look()
    if as_json:
        return print_json(report.as_json())
    _show(report, acted=force or acted)
    return None


def instances(context: typer.Context, as_json: JsonOption = False) -> None:
    """List every machine of every provider: what the provider says, beside what we think.

    Examples:

      stationmaster instances

      stationmaster instances --json
    """
    as_json = as_json or options_of(context).as_json
    with station_of(context, wake=False) as station:
        report = station.instances.look()
    if as_json:
        return print_json(report.as_json())
    _show(report, acted=False)
    return None


def _end(station: Station, fleet: Fleet, count: int | None) -> tuple[bool, Report]:
    """End the machines that a person has counted; whether there were any, and what came of it."""
    machines = station.instances.meant(fleet)
    ended = station.instances.end(machines, count=_typed_count(len(machines), count))
    for job_id in ended.cancelled:
        typer.echo(f"job {job_id} is cancelled", err=True)
    return bool(machines), ended.report


def _typed_count(machines: int, count: int | None) -> int:
    """The number is typed, so that nobody ends a fleet by reflex."""
    if count is not None:
        return count
    if not sys.stdin.isatty():
        raise UserError(f"this would end {machines} machine(s) and nobody can be asked", hint=f"add --count {machines}")
    typed: int = typer.prompt(f"This ends {machines} machine(s) and what is on them. Type the number", type=int)
    return typed


def _show(report: Report, *, acted: bool) -> None:
    for finding in report.findings:
        what = finding.verdict.act.value
        mark = "done" if finding.done else ("FAILED" if finding.problem else what)
        typer.echo(
            f"{mark:<8} {finding.provider:<9} {finding.machine.provider_id:<12} {finding.machine.status:<9} "
            f"{finding.machine.label or '(no label)'}: {finding.verdict.why}"
        )
    for problem in report.problems:
        typer.echo(f"could not look: {problem}", err=True)
    waiting = [
        finding for finding in report.findings if finding.verdict.act in (Act.DESTROY, Act.STOP) and not finding.done
    ]
    if not report.findings and not report.problems:
        typer.echo("no machines")
    elif waiting and not acted:
        typer.echo(f"{len(waiting)} machine(s) would be ended or stopped: add --force")
