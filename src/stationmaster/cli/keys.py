"""`stationmaster keys`: the SSH key for rented machines, and the host keys of your own machines."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from stationmaster.cli.context import JsonOption, local_station_of, options_of, print_document
from stationmaster.cli.help_pages import CommandGroup
from stationmaster.cli.speaking import is_quiet
from stationmaster.errors import UserError
from stationmaster.printable import one_line
from stationmaster.station.keys import KeyStanding, OfferedHostKey

app = CommandGroup(help="Set up the SSH key for rented machines; pin host keys.")

_DASHBOARD = "https://cloud.vast.ai/manage-keys/"
_NO_PROVIDER = "no provider that keeps keys is set up: set VASTAI_API_KEY, then run `stationmaster keys setup` again"


@app.command("setup")
def setup(context: typer.Context, as_json: JsonOption = False) -> None:
    """Create the key pair for rented machines and register it.

    Registers the public key with each provider that keeps keys. Safe to repeat.

    Examples:

      stationmaster keys setup

      VASTAI_SSH_KEY_PATH=~/.ssh/other stationmaster keys setup
    """
    with local_station_of(context, wake=False) as station:
        standing = station.keys.setup()
    if as_json or options_of(context).as_json:
        return _print_document(standing)
    if is_quiet():
        return typer.echo(standing.private_path)
    typer.echo(f"{'created' if standing.made else 'found'} {standing.private_path}")
    for name in standing.providers:
        typer.echo(f"{name} has the key")
    if not standing.providers:
        typer.echo(_NO_PROVIDER)
    return None


@app.command("check")
def check(context: typer.Context, as_json: JsonOption = False) -> None:
    """Show the provider's keys and whether ours is among them.

    Exit code 1 if it is not.

    Examples:

      stationmaster keys check

      stationmaster keys check --json
    """
    with local_station_of(context, wake=False) as station:
        standing = station.keys.check()
    if as_json or options_of(context).as_json:
        _print_document(standing)
    else:
        _show(standing)
    if not standing.providers or not all(account.knows_ours for account in standing.providers.values()):
        raise typer.Exit(1)


@app.command("trust")
def trust(
    context: typer.Context,
    host: Annotated[str, typer.Argument(metavar="HOST", help="Name in ssh.hosts, or ADDRESS[:PORT].")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show and pin the host key of a machine of your own.

    Compare the key with the one on the machine before you confirm.

    Examples:

      stationmaster keys trust gpu-box

      stationmaster keys trust 192.168.1.20:2222 --yes --json
    """
    as_json = as_json or options_of(context).as_json
    with local_station_of(context, wake=False) as station:
        offered = station.keys.offered_by(host)
        if offered.is_new:
            if not as_json:
                _show_offered(offered)
            _confirm(yes=yes)
            station.keys.pin(host, offered.key)
    if as_json:
        from stationmaster.cli.answers import PinnedHostKey

        pinned = PinnedHostKey(host=host, key=offered.key.line, file=offered.file, changed=offered.is_new)
        return print_document(pinned)
    typer.echo(f"pinned in {offered.file}" if offered.is_new else f"{host} shows the pinned key; nothing was changed")
    return None


def _print_document(standing: KeyStanding) -> None:
    from stationmaster.cli.answers import OwnKey, ProviderKeys

    providers = {
        name: ProviderKeys(knows_ours=account.knows_ours, keys=tuple(key.line for key in account.keys))
        for name, account in standing.providers.items()
    }
    print_document(
        OwnKey(
            private_key_path=standing.private_path,
            public_key=standing.public.line,
            made=standing.made,
            providers=providers,
        )
    )


def _show(standing: KeyStanding) -> None:
    if not is_quiet():
        typer.echo(f"ours      {standing.public.fingerprint}  {standing.private_path}")
    for name, account in standing.providers.items():
        for key in () if is_quiet() else account.keys:
            mark = "  (ours)" if key.is_same_as(standing.public) else ""
            typer.echo(f"{name:<9} {key.fingerprint}  {one_line(key.comment)}{mark}")
        if not account.knows_ours:
            _advise(name, standing, has_keys=bool(account.keys))
    if not standing.providers:
        typer.echo(_NO_PROVIDER, err=True)


def _advise(name: str, standing: KeyStanding, *, has_keys: bool) -> None:
    keys = "has only other keys" if has_keys else "has no keys"
    typer.echo(f"{name} {keys}: machines rented now would refuse the login", err=True)
    if is_quiet():
        return
    typer.echo("hint: possible causes:", err=True)
    typer.echo("  the key is not registered: run `stationmaster keys setup`", err=True)
    typer.echo(f"  you use another key: set VASTAI_SSH_KEY_PATH (now {standing.private_path})", err=True)
    typer.echo(f"  the key was removed in the dashboard: add {standing.public_path} at {_DASHBOARD}", err=True)


def _show_offered(offered: OfferedHostKey) -> None:
    typer.echo(f"{offered.host} shows {offered.key.kind} {offered.key.fingerprint}")
    for old in offered.pinned:
        typer.echo(f"the pinned key is {old.kind} {old.fingerprint}: was the machine reinstalled?", err=True)
    typer.echo("compare it with the output on the machine of: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub")


def _confirm(*, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise UserError(
            "confirmation of the host key needed, but stdin is not a terminal", hint="compare the key, then pass --yes"
        )
    if not typer.confirm("Is this the machine's key?"):
        raise typer.Exit(1)
