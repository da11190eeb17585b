"""`stationmaster ssh`: a shell on a job's machine."""

from __future__ import annotations

import os

import typer

from stationmaster.cli.context import JobArgument, station_of
from stationmaster.errors import UserError


def ssh(context: typer.Context, job: JobArgument) -> None:
    """Open a shell on a job's machine.

    For a job that runs on this computer, the shell opens in the machine's folder. Connects only if the machine shows
    the host key pinned for the job. Your SSH agent is never forwarded to it.

    Examples:

      stationmaster ssh 7f3k2q9a

      stationmaster ssh cats
    """
    with station_of(context) as station:
        shell = station.processes.shell(job)
    if shell.warning is not None:
        typer.echo(f"warning: {shell.warning}", err=True)
    if shell.folder is not None:
        os.chdir(shell.folder)
    try:
        os.execvpe(shell.argv[0], shell.argv, {**os.environ, **shell.environment})
    except FileNotFoundError:
        if shell.folder is not None:
            raise
        raise UserError(f"{shell.argv[0]} is not installed here", hint="install the OpenSSH client") from None
