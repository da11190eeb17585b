"""`stationmaster trust`: let the settings files of a folder take effect."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from stationmaster.cli.context import JsonOption, given_path, options_of, print_json
from stationmaster.printable import one_line
from stationmaster.station.local.trusting import FolderTrust, SettingsFile


def trust(
    context: typer.Context,
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE", help="Default: all settings files here.", show_default=False)
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Trust them no longer.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Trust the settings files in the current folder.

    Before this, and again after each change, a .env or stationmaster.toml there may set only harmless choices and
    missing keys: settings can run commands, redirect keys and destroy machines. Read a file that you did not write.

    Examples:

      stationmaster trust

      stationmaster trust .env --remove
    """
    options = options_of(context)
    paths = [given_path(file) for file in files or ()]
    trusting = FolderTrust(options.environ, home=options.home, folder=Path.cwd())
    if remove:
        _print_forgotten(trusting.forget(paths), as_json=as_json)
    else:
        _print_trusted(trusting.trust(paths), as_json=as_json)


def _print_trusted(files: Sequence[SettingsFile], *, as_json: bool) -> None:
    if as_json:
        from stationmaster.cli.answers import TrustedFile

        trusted = [TrustedFile(path=str(file.path), sha256=file.sha256, settings=file.names) for file in files]
        print_json([file.model_dump(mode="json") for file in trusted])
        return
    for file in files:
        names = ", ".join(file.names) or "nothing"
        typer.echo(f"trusted until it changes: {one_line(str(file.path))}, which sets {one_line(names)}")


def _print_forgotten(paths: Sequence[Path], *, as_json: bool) -> None:
    if as_json:
        from stationmaster.cli.answers import ForgottenFile

        print_json([ForgottenFile(path=str(path)).model_dump(mode="json") for path in paths])
        return
    for path in paths:
        typer.echo(f"no longer trusted: {one_line(str(path))}")
    if not paths:
        typer.echo("none of them was trusted")
