"""`stationmaster ssh`: a shell on a job's machine."""

from __future__ import annotations

import os

import typer

from stationmaster.cli.context import JobArgument, station_of


def ssh(context: typer.Context, job: JobArgument) -> None:
    """Open a shell on a job's machine; on this computer, in the machine's folder.

    Examples:

      stationmaster ssh 7f3k2q9a

      stationmaster ssh cats
    """
    from stationmaster.errors import IllegalMove
    from stationmaster.model import LocalAccess

    with station_of(context) as station:
        found = station.find(job)
        access = station.view(found.id).access
    if access is None:
        raise IllegalMove(f"job {found.id} has no machine now: it is {found.state}", hint="see `stationmaster jobs`")
    if isinstance(access, LocalAccess):
        folder = f"{access.job_root}/{found.id}"
        os.chdir(folder if os.path.isdir(folder) else access.root)  # noqa: PTH112
        shell = os.environ.get("SHELL", "/bin/sh")
        environment = dict(access.environment)
        environment.pop("STATIONMASTER_MACHINE", None)  # a person's shell must not die with the machine
        os.execvpe(shell, [shell], {**os.environ, **environment})
    key = [] if access.key_path is None else ["-i", access.key_path]
    port = ["-p", str(access.port)] if access.port else []  # else as the person's SSH configuration says
    os.execvp("ssh", ["ssh", *port, *key, f"{access.user}@{access.host}" if access.user else access.host])
