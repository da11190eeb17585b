"""`sweep`, `instances`: all machines that may cost money, ours or not."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from stationmaster.cli.context import JsonOption, options_of, print_json, station_of
from stationmaster.cli.speaking import extra, note
from stationmaster.cli.table import Cell, Column, Row, print_table
from stationmaster.errors import UserError
from stationmaster.money import format_dollars
from stationmaster.printable import one_line
from stationmaster.station.base import Station
from stationmaster.station.instances import Act, Finding, Fleet, Report

_COLUMNS = (
    Column("INSTANCE"),
    Column("PROVIDER", leaves=2),
    Column("STATUS", leaves=1),
    Column("$/H", right=True),
    Column("COST", right=True),
    Column("SWEEP"),
    Column("WHY", shrinks_to=20),
)


def sweep(
    context: typer.Context,
    force: Annotated[bool, typer.Option("--force", help="Act on the findings (default: dry run).")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Destroy every machine of this installation and cancel their jobs.")
    ] = False,
    foreign: Annotated[
        bool, typer.Option("--include-foreign", help="With --all: also machines that Stationmaster did not rent.")
    ] = False,
    installation: Annotated[
        str | None, typer.Option(help="Destroy every machine of another installation.", show_default=False)
    ] = None,
    count: Annotated[
        int | None,
        typer.Option("--count", help="With --all or --installation: the number of machines, instead of typing it."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Find rented machines that no job needs.

    Dry run unless you pass --force. With --all or --installation you must type the number of machines; they are
    destroyed at once, data included.

    Examples:

      stationmaster sweep

      stationmaster sweep --force
    """
    as_json = as_json or options_of(context).as_json
    if foreign and (installation or not everything):
        raise UserError(
            "--include-foreign has an effect only with --all", hint="add --all without --installation, or leave it out"
        )
    if count is not None and not (everything or installation):
        raise UserError(
            "--count has an effect only with --all or --installation",
            hint="leave it out: `stationmaster sweep --force` acts on the findings without a number",
        )
    with station_of(context, wake=False) as station:
        if everything or installation:
            fleet = Fleet(installation=installation or None, with_foreign=foreign)
            acted, report = _destroy(station, fleet, count)
        elif force:
            acted, report = True, station.instances.sweep()
        else:
            acted, report = False, station.instances.look()
    if as_json:
        return _print_json(report)
    _show(report, acted=force or acted)
    return None


def instances(context: typer.Context, as_json: JsonOption = False) -> None:
    """List all machines of all providers, and what a sweep would do.

    Shows the price per hour of each and what it has cost so far.

    Examples:

      stationmaster instances

      stationmaster instances --json
    """
    as_json = as_json or options_of(context).as_json
    with station_of(context, wake=False) as station:
        report = station.instances.look()
    if as_json:
        return _print_json(report)
    _show(report, acted=False)
    return None


def _destroy(station: Station, fleet: Fleet, count: int | None) -> tuple[bool, Report]:
    """Destroy the machines, once their number is confirmed; whether there were any, and the report."""
    machines = station.instances.machines_of(fleet)
    destroyed = station.instances.destroy(machines, count=_typed_count(len(machines), count))
    for job_id in destroyed.cancelled:
        note(f"job {job_id} is cancelled")
    return bool(machines), destroyed.report


def _typed_count(machines: int, count: int | None) -> int:
    """The number must be typed, so that a fleet is not destroyed by reflex."""
    if count is not None:
        return count
    if not sys.stdin.isatty():
        raise UserError(
            f"this destroys {machines} machine(s): confirmation needed, but stdin is not a terminal",
            hint=f"pass --count {machines}",
        )
    typed: int = typer.prompt(
        f"This destroys {machines} machine(s) with all data on them. Type the number of machines", type=int
    )
    return typed


def _print_json(report: Report) -> None:
    from stationmaster.station.wire.instances import SweepDocument

    print_json(SweepDocument.of(report).model_dump(mode="json"))


def _show(report: Report, *, acted: bool) -> None:
    if report.findings:
        print_table(_COLUMNS, map(_row, report.findings))
        together = f"{format_dollars(report.price_per_hour, 3)} per hour, {format_dollars(report.cost)} so far"
        extra(f"{len(report.findings)} machine(s): {together}")
    for problem in report.problems:
        typer.echo(f"could not check: {one_line(problem)}", err=True)
    waiting = [
        finding for finding in report.findings if finding.verdict.act in (Act.DESTROY, Act.STOP) and not finding.done
    ]
    if not report.findings and not report.problems:
        typer.echo("no machines")
    elif waiting and not acted:
        typer.echo(f"{len(waiting)} machine(s) would be destroyed or stopped: pass --force")


def _row(finding: Finding) -> Row:
    what, machine = finding.verdict.act.value, finding.machine
    mark = Cell("done", "green") if finding.done else (Cell("FAILED", "red") if finding.problem else Cell(what))
    hourly, so_far = format_dollars(machine.price_per_hour, 3), format_dollars(finding.cost)
    why = f"{machine.label or '(no label)'}: {finding.verdict.why}"
    return machine.provider_id, finding.provider, machine.status, hourly, so_far, mark, why
