"""`jobs`, `show`, `stop`, `cancel`, `pull`, `ssh`: the commands for jobs, their files and their machines."""

from __future__ import annotations

import os
import shutil
import sys
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stationmaster.cli.context import (
    JobArgument,
    JsonOption,
    finite,
    given_path,
    local_station_of,
    named,
    options_of,
    print_document,
    print_json,
    print_lines,
    print_note,
    print_sentences,
    station_of,
)
from stationmaster.cli.file_modes import as_the_person
from stationmaster.cli.help_pages import CommandGroup
from stationmaster.cli.job_lines import dated_lines, view_lines
from stationmaster.cli.job_table import print_jobs, watch_jobs
from stationmaster.cli.prune import prune
from stationmaster.cli.render import job_json
from stationmaster.cli.speaking import is_quiet, note
from stationmaster.errors import AlreadyEnded, UserError
from stationmaster.event_sentences import heartbeat_sentence, sentence
from stationmaster.model import Desired, Job
from stationmaster.printable import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stationmaster.station.base import Station  # imports every noun; these commands need few
    from stationmaster.station.jobs import JobView

app = CommandGroup(invoke_without_command=True, no_args_is_help=False)


@app.callback()
def jobs(
    context: typer.Context,
    everything: Annotated[bool, typer.Option("--all", "-a", help="Also show ended jobs.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=1_000_000, help="Show at most this many jobs.")] = 50,
    owner: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Show only jobs of this user.", callback=named("user", "users list")),
    ] = None,
    keep_watching: Annotated[
        bool, typer.Option("--watch", "-w", help="Keep the list up to date until Ctrl-C; see also `watch`.")
    ] = False,
    interval: Annotated[
        float, typer.Option(min=0.5, callback=finite, help="With --watch: seconds between looks.")
    ] = 2.0,
    as_json: JsonOption = False,
) -> None:
    """List jobs, newest first.

    With --watch a terminal shows the list in one place; a pipe gets a line for each job that changed, and with --json
    an object.

    Examples:

      stationmaster jobs --all

      stationmaster jobs --watch

      stationmaster jobs --owner ann --json
    """
    if context.invoked_subcommand is not None:
        return None
    with_json = as_json or options_of(context).as_json
    with station_of(context) as station:
        _print_unread_count(station)

        def look() -> Sequence[JobView]:
            return station.jobs.views(with_ended=everything, limit=limit, owner=owner)

        if keep_watching:
            return watch_jobs(look, interval=interval, everything=everything, as_json=with_json)
        found = look()
        if with_json:
            return print_json([job_json(view) for view in found])
        print_jobs(found, everything=everything)
    return None


@app.command("rm")
def remove(
    context: typer.Context,
    job: JobArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete an ended job, with its local model and files.

    Examples:

      stationmaster jobs rm 7f3k2q9a

      stationmaster jobs rm 7f3k2q9a --yes --json
    """
    with station_of(context) as station:
        found = station.jobs.find(job)
        if not yes and not sys.stdin.isatty():
            raise UserError(
                "this deletes the local model: confirmation needed, but stdin is not a terminal", hint="pass --yes"
            )
        if not yes and not typer.confirm(f"Delete {one_line(found.spec.name)} ({found.id}) and its files?"):
            return
        station.jobs.remove(found.id)
    if as_json or options_of(context).as_json:
        from stationmaster.cli.answers import RemovedJob

        print_document(RemovedJob(id=found.id))
    else:
        typer.echo(f"removed {found.id}")


app.command("prune")(prune)


def show(
    context: typer.Context,
    job: JobArgument,
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="Show all machines, alerts and checkpoints, and long texts whole.")
    ] = False,
    events: Annotated[bool, typer.Option("--events", help="Also list what happened to it.")] = False,
    progress: Annotated[
        bool, typer.Option("--progress", help="Also list how far it was at its last heartbeats; of older ones a few.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show a job's state, stage, progress, cost and machines.

    On one screen: long lists are shortened, --all prints them whole. The values of each step (loss, learning rate,
    speed) are in `stationmaster metrics JOB`.

    Examples:

      stationmaster show 7f3k2q9a --progress

      stationmaster show cats --events --json
    """
    with station_of(context) as station:
        found = station.jobs.find(job)
        history = station.events.of_job(found.id)
        view = station.jobs.view(found.id)
        if as_json or options_of(context).as_json:
            return print_json(job_json(view, history))
        trend = () if view.job.progress.step is None else station.readings.loss_trend(found.id)
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        print_lines(view_lines(view, trend=trend, whole=everything, width=width, with_next=not is_quiet()))
        lines = [(event.at, sentence(event.kind, event.payload)) for event in history if events]
        beats = view.job.watching.heartbeats if progress else ()
        lines += [(beat.at, heartbeat_sentence(beat.step, beat.percent, beat.eta_seconds)) for beat in beats]
        print_sentences(dated_lines(sorted(lines, key=itemgetter(0)), now=view.now))
    return None


def stop(
    context: typer.Context,
    job: JobArgument,
    _yes: Annotated[bool, typer.Option("--yes", "-y", help="As for `cancel`; a stop never asks.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Stop a training and keep its best checkpoint.

    The machine is released afterwards. A job that has not trained yet ends at once. If its machine was stopped because
    the model could not be downloaded, it is started again and the download is retried once.

    Examples:

      stationmaster stop 7f3k2q9a

      stationmaster stop cats --json
    """
    with station_of(context) as station:
        _desire(context, station, station.jobs.find(job), Desired.STOP, as_json=as_json)


def cancel(
    context: typer.Context,
    job: JobArgument,
    keep: Annotated[bool, typer.Option("--keep", help="Download the best checkpoint first.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Cancel a job and release its machine at once.

    Everything on the machine is lost unless you pass --keep.

    Examples:

      stationmaster cancel 7f3k2q9a --keep

      stationmaster cancel 7f3k2q9a --yes
    """
    with station_of(context) as station:
        found = station.jobs.find(job)
        lost = station.jobs.view(found.id).at_risk if found.outcome is None and not keep else None
        if lost and not yes:
            if not sys.stdin.isatty():
                raise UserError(
                    f"{lost} would be lost: confirmation needed, but stdin is not a terminal",
                    hint="pass --keep or --yes",
                )
            if not typer.confirm(f"{one_line(lost)} would be lost. Cancel anyway?"):
                return
        _desire(context, station, found, Desired.CANCEL_KEEP if keep else Desired.CANCEL, as_json=as_json)


def _desire(context: typer.Context, station: Station, job: Job, desired: Desired, *, as_json: bool) -> None:
    try:
        note = station.jobs.desire(job.id, desired).note
    except AlreadyEnded as ended:
        if not (as_json or options_of(context).as_json):
            raise
        note = str(ended)  # no error: the exit code is 0, so a program must get its document
    print_note(context, job.id, note, as_json=as_json)


def pull(
    context: typer.Context,
    job: JobArgument,
    target: Annotated[Path, typer.Argument(parser=given_path, metavar="[DIR]", help="Target folder.")] = Path(),
    as_json: JsonOption = False,
) -> None:
    """Copy a job's model, samples and logs to a folder.

    Each copy is verified. In DIR, each file has the path that it had in the job's folder on the machine
    (output/cats.safetensors); files of earlier attempts are in attempt-1, attempt-2. Existing files are overwritten.

    Examples:

      stationmaster pull 7f3k2q9a

      stationmaster pull cats ./models/cats
    """
    with station_of(context) as station:
        from stationmaster.cli.progress_bars import transfer_bar  # `jobs` and `show` draw nothing

        found = station.jobs.find(job).id
        with transfer_bar(f"copying {found}", hidden=as_json) as progress, as_the_person():
            copies = station.artifacts.pull(found, target, progress=progress)
        if as_json or options_of(context).as_json:
            from stationmaster.cli.answers import CopiedFiles

            print_document(CopiedFiles(files=tuple(map(str, copies))))
        else:
            print_lines(map(str, copies))
            note(f"{len(copies)} file(s) copied and verified")


def ssh(context: typer.Context, job: JobArgument) -> None:
    """Open a shell on a job's machine.

    For a job that runs on this computer, the shell opens in the machine's folder. Connects only if the machine shows
    the host key pinned for the job. Your SSH agent is never forwarded to it.

    Examples:

      stationmaster ssh 7f3k2q9a

      stationmaster ssh cats
    """
    with local_station_of(context) as station:
        shell = station.processes.shell(job)
    if shell.warning is not None:
        typer.echo(f"warning: {one_line(shell.warning)}", err=True)
    if shell.folder is not None:
        os.chdir(shell.folder)
    try:
        with as_the_person():
            os.execvpe(shell.argv[0], shell.argv, {**os.environ, **shell.environment})
    except FileNotFoundError:
        if shell.folder is not None:
            raise
        raise UserError(f"{shell.argv[0]} is not installed", hint="install the OpenSSH client") from None


def _print_unread_count(station: Station) -> None:
    if unread := station.notifications.count_unread():
        note(f"{unread} unread message(s): stationmaster notify inbox")
