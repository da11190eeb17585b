"""`stationmaster ssh`: a shell on a job's machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NoReturn

import typer

from stationmaster.cli.context import JobArgument, station_of

if TYPE_CHECKING:
    from stationmaster.model import LocalAccess, SshAccess
    from stationmaster.settings import Settings


def ssh(context: typer.Context, job: JobArgument) -> None:
    """Open a shell on a job's machine; on this computer, in the machine's folder.

    Only a machine that shows the host key pinned for the job is let through. Your SSH agent is never forwarded to it.

    Examples:

      stationmaster ssh 7f3k2q9a

      stationmaster ssh cats
    """
    from stationmaster.errors import IllegalMove
    from stationmaster.model import LocalAccess

    with station_of(context) as station:
        found = station.jobs.find(job)
        access = station.jobs.view(found.id).access
        settings = station.settings
    if access is None:
        raise IllegalMove(f"job {found.id} has no machine now: it is {found.state}", hint="see `stationmaster jobs`")
    if isinstance(access, LocalAccess):
        _shell_here(access, found.id)
    _shell_there(access, found.id, settings)


def _shell_here(access: LocalAccess, job_id: str) -> NoReturn:
    folder = f"{access.job_root}/{job_id}"
    os.chdir(folder if os.path.isdir(folder) else access.root)  # noqa: PTH112
    shell = os.environ.get("SHELL", "/bin/sh")
    environment = dict(access.environment)
    environment.pop("STATIONMASTER_MACHINE", None)  # a person's shell must not die with the machine
    os.execvpe(shell, [shell], {**os.environ, **environment})


def _shell_there(access: SshAccess, job_id: str, settings: Settings) -> NoReturn:
    from stationmaster.errors import UserError
    from stationmaster.remote.shell import shell_command, shell_folder

    command = shell_command(access, folder=shell_folder(settings.home, job_id), config_path=settings.ssh.config_path)
    if access.unverified:
        said = f"the host key of {access.host} could not be verified: another machine may answer"
        typer.echo(f"warning: {said}; type no secret there", err=True)
    try:
        os.execvp(command[0], command)
    except FileNotFoundError:
        raise UserError(f"{command[0]} is not installed here", hint="install the OpenSSH client") from None
