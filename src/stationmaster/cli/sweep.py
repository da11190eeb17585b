"""`sweep`, `sweeper`, `instances`: every machine that may bill, ours or not."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from stationmaster.cli.context import JsonOption, Options, options_of, print_json

if TYPE_CHECKING:
    from stationmaster.control.safety.sweep import Finding, Report


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
    options = options_of(context)
    report = asyncio.run(_sweep(options, act=False))
    doomed = _doomed(report, options, everything=everything, foreign=foreign, installation=installation)
    if everything or installation:
        _confirm(len(doomed), count)
        _cancel_their_jobs(report, doomed, options)
        report = asyncio.run(_sweep(options, act=True, doomed=doomed))
    elif force:
        report = asyncio.run(_sweep(options, act=True))
    if as_json or options.as_json:
        return print_json(report.as_json())
    _show(report, acted=force or bool(doomed))
    return None


def sweeper(
    context: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="One sweep, then leave.")] = False,
) -> None:
    """Run the safety net on its own: it ends what nobody needs, also when every worker is dead.

    Examples:

      stationmaster sweeper

      stationmaster sweeper --once
    """
    from stationmaster.cli.logging import service_logging
    from stationmaster.control.service import serve_sweeper

    options = options_of(context)
    source = options.settings_source()
    service_logging(source.settings.log_level)
    serve_sweeper(source, once=once)


def instances(context: typer.Context, as_json: JsonOption = False) -> None:
    """List every machine of every provider: what the provider says, beside what we think.

    Examples:

      stationmaster instances

      stationmaster instances --json
    """
    options = options_of(context)
    report = asyncio.run(_sweep(options, act=False))
    if as_json or options.as_json:
        return print_json(report.as_json())
    _show(report, acted=False)
    return None


async def _sweep(options: Options, *, act: bool, doomed: frozenset[str] = frozenset()) -> Report:
    from stationmaster.cli.logging import quiet_logging
    from stationmaster.cli.waiting import wait_visibly
    from stationmaster.control.build import build_world, sweep_policy_of
    from stationmaster.control.opening import open_store
    from stationmaster.control.providers import Waiting
    from stationmaster.control.safety.sweep import Sweeper

    quiet_logging()
    settings = options.settings()
    store = open_store(settings, writable=act)
    # Only a look may give up soon: what is to be ended is asked for as patiently as a worker does.
    waiting = Waiting(hurried=not act, pause=wait_visibly)
    world = build_world(settings, options.environ, store, waiting=waiting)
    try:
        return await Sweeper(world, sweep_policy_of(settings)).sweep(act=act, doomed=doomed)
    finally:
        await world.close()
        store.close()


def _doomed(
    report: Report, options: Options, *, everything: bool, foreign: bool, installation: str | None
) -> frozenset[str]:
    from stationmaster.control.opening import open_store
    from stationmaster.model import Label

    store = open_store(options.settings(), writable=False)
    ours = store.installation_id
    store.close()

    def is_meant(finding: Finding) -> bool:
        label = Label.parse(finding.machine.label)
        if installation:
            return label is not None and label.installation == installation
        return everything and (foreign or (label is not None and label.installation == ours))

    return frozenset(finding.machine.provider_id for finding in report.findings if is_meant(finding))


def _cancel_their_jobs(report: Report, doomed: frozenset[str], options: Options) -> None:
    """A job whose machine is taken away would rent another one."""
    from stationmaster.control.opening import open_store
    from stationmaster.errors import AlreadyEnded, NotFound
    from stationmaster.model import Desired, Label

    store = open_store(options.settings(), writable=True)
    try:
        labels = [Label.parse(one.machine.label) for one in report.findings if one.machine.provider_id in doomed]
        for job_id in {label.job for label in labels if label and label.installation == store.installation_id}:
            with contextlib.suppress(AlreadyEnded, NotFound):
                store.jobs.desire(job_id, Desired.CANCEL)
                typer.echo(f"job {job_id} is cancelled", err=True)
    finally:
        store.close()


def _confirm(machines: int, count: int | None) -> None:
    """The number is typed, so that nobody ends a fleet by reflex."""
    from stationmaster.errors import UserError

    if count is None and sys.stdin.isatty():
        count = typer.prompt(f"This ends {machines} machine(s) and what is on them. Type the number", type=int)
    if count is None:
        raise UserError(f"this would end {machines} machine(s) and nobody can be asked", hint=f"add --count {machines}")
    if count != machines:
        raise UserError(f"{count} was typed, but {machines} machine(s) would end; nothing was done")


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
        finding for finding in report.findings if finding.verdict.act in ("destroy", "stop") and not finding.done
    ]
    if not report.findings and not report.problems:
        typer.echo("no machines")
    elif waiting and not acted:
        typer.echo(f"{len(waiting)} machine(s) would be ended or stopped: add --force")
