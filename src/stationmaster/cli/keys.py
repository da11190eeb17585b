"""`stationmaster keys`: the SSH key that lets us in on rented machines, and the host keys of own ones."""

from __future__ import annotations

import asyncio
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stationmaster.cli.context import JsonOption, Options, options_of, print_json, with_hint
from stationmaster.errors import RemoteError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from stationmaster.providers.base import KnowsKeys
    from stationmaster.providers.vastai.keys import KeyPair, KeyReport
    from stationmaster.settings import Settings

    Ask = Callable[[KeyPair, KnowsKeys], Awaitable[KeyReport]]

app = typer.Typer(help="The SSH key for rented machines, and the host keys of your own.", no_args_is_help=True)

_DASHBOARD = "https://cloud.vast.ai/manage-keys/"
_NO_PROVIDER = "no provider that keeps keys is set up: set VASTAI_API_KEY, then run `stationmaster keys setup` again"
_ANSWER_SECONDS = 20.0


@app.command("setup")
def setup(context: typer.Context, as_json: JsonOption = False) -> None:
    """Make a key pair for rented machines and register its public half. Safe to repeat.

    Examples:

      stationmaster keys setup

      VASTAI_SSH_KEY_PATH=~/.ssh/other stationmaster keys setup
    """
    from stationmaster.control.providers import ssh_key_path
    from stationmaster.providers.vastai.keys import ensure_pair, register

    options = options_of(context)
    settings = options.settings()
    pair = ensure_pair(ssh_key_path(settings))
    reports = asyncio.run(_ask_all(options, settings, pair, register))
    if as_json or options.as_json:
        return print_json(_as_json(pair, reports))
    typer.echo(f"{'made' if pair.made else 'found'} {pair.private_path}")
    for name in reports:
        typer.echo(f"{name} knows the key")
    if not reports:
        typer.echo(_NO_PROVIDER)
    return None


@app.command("check")
def check(context: typer.Context, as_json: JsonOption = False) -> None:
    """Say which keys the provider has and whether ours is among them. Exit code 1 if it is not.

    Examples:

      stationmaster keys check

      stationmaster keys check --json
    """
    from stationmaster.control.providers import ssh_key_path
    from stationmaster.providers.vastai.keys import check as compare
    from stationmaster.providers.vastai.keys import read_pair

    options = options_of(context)
    settings = options.settings()
    pair = read_pair(ssh_key_path(settings))
    reports = asyncio.run(_ask_all(options, settings, pair, compare))
    if as_json or options.as_json:
        print_json(_as_json(pair, reports))
    else:
        _show(pair, reports)
    if not reports or not all(report.is_ours_known for report in reports.values()):
        raise typer.Exit(1)


@app.command("trust")
def trust(
    context: typer.Context,
    host: Annotated[str, typer.Argument(metavar="HOST", help="A name from ssh.hosts, or ADDRESS[:PORT].")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Look at the host key of a machine of your own and pin it once you have compared it.

    Examples:

      stationmaster keys trust gpu-box

      stationmaster keys trust 192.168.1.20:2222 --yes --json
    """
    from stationmaster.control.rental.own_machines import known_hosts_file
    from stationmaster.remote.known_hosts import pin_key, pinned_keys
    from stationmaster.remote.ssh_connection import offered_host_key

    as_json = as_json or options_of(context).as_json
    settings = options_of(context).settings()
    file = known_hosts_file(settings)
    door = _door(host, settings)
    with with_hint("check the address and the port, and that the machine is on and its SSH server runs", RemoteError):
        key = asyncio.run(offered_host_key(door.address, door.port, timeout=_ANSWER_SECONDS))
    known = pinned_keys(file, door.address, door.port)
    is_new = " ".join(key.split()[:2]) not in known
    if is_new:
        if not as_json:
            _show_offered(host, key, known)
        _confirm(yes=yes)
        pin_key(file, door.address, door.port, key)
    if as_json:
        return print_json({"host": host, "key": key, "file": str(file), "changed": is_new})
    typer.echo(f"pinned in {file}" if is_new else f"{host} still shows the key that is pinned")
    return None


async def _ask_all(options: Options, settings: Settings, pair: KeyPair, ask: Ask) -> dict[str, KeyReport]:
    """What `ask` learns from every provider that keeps keys."""
    from stationmaster.cli.logging import quiet_logging
    from stationmaster.cli.waiting import wait_visibly
    from stationmaster.control.opening import open_store
    from stationmaster.control.providers import Waiting, build_providers
    from stationmaster.providers.base import KnowsKeys

    quiet_logging()
    store = open_store(settings)
    try:
        waiting = Waiting(hurried=True, pause=wait_visibly)
        providers = build_providers(settings, options.environ, store, waiting=waiting)
        # The simulator has a pair of its own, made and registered by itself.
        keepers: dict[str, KnowsKeys] = {
            name: provider
            for name, provider in providers.items()
            if isinstance(provider, KnowsKeys) and name != "simulator"
        }
        return {name: await ask(pair, provider) for name, provider in keepers.items()}
    finally:
        store.close()


def _as_json(pair: KeyPair, reports: dict[str, KeyReport]) -> dict[str, Any]:
    return {
        "private_key_path": str(pair.private_path),
        "public_key": pair.public_key,
        "made": pair.made,
        "providers": {
            name: {"knows_ours": report.is_ours_known, "keys": list(report.known)} for name, report in reports.items()
        },
    }


def _show(pair: KeyPair, reports: dict[str, KeyReport]) -> None:
    from stationmaster.remote.known_hosts import fingerprint

    typer.echo(f"ours      {fingerprint(pair.public_key)}  {pair.private_path}")
    for name, report in reports.items():
        for key in report.known:
            mark = "  (ours)" if key.split()[:2] == pair.public_key.split()[:2] else ""
            typer.echo(f"{name:<9} {fingerprint(key)}  {' '.join(key.split()[2:])}{mark}")
        if not report.is_ours_known:
            _advise(name, pair, has_keys=bool(report.known))
    if not reports:
        typer.echo(_NO_PROVIDER, err=True)


def _advise(name: str, pair: KeyPair, *, has_keys: bool) -> None:
    keys = "has only other keys" if has_keys else "has no keys"
    typer.echo(f"{name} {keys}: machines rented now would not let us in", err=True)
    typer.echo("hint: one of these is the cause", err=True)
    typer.echo("  the key is not registered: run `stationmaster keys setup`", err=True)
    typer.echo(f"  another key is meant: set VASTAI_SSH_KEY_PATH (now {pair.private_path})", err=True)
    typer.echo(f"  the key was removed in the dashboard: add {pair.public_path} at {_DASHBOARD}", err=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Door:
    address: str
    port: int


def _door(host: str, settings: Settings) -> _Door:
    """Where the host's SSH server is: by its name in the settings, else as written."""
    from stationmaster.errors import UserError
    from stationmaster.settings.addresses import is_host

    known = next((each for each in settings.ssh.hosts if each.name == host), None)
    if known is not None:
        return _Door(address=known.address, port=known.port or 22)
    address, colon, port = host.rpartition(":")
    if not colon:
        address, port = host, "22"
    if not is_host(address) or not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) < 65536:
        raise UserError(f"{host!r} is not a host", hint="write a name from ssh.hosts, or ADDRESS:PORT")
    return _Door(address=address, port=int(port))


def _show_offered(host: str, key: str, known: tuple[str, ...]) -> None:
    from stationmaster.remote.known_hosts import fingerprint

    typer.echo(f"{host} shows {key.split()[0]} {fingerprint(key)}")
    for old in known:
        typer.echo(f"until now it was {old.split()[0]} {fingerprint(old)}: was the machine set up anew?", err=True)
    typer.echo("compare it with what the machine itself says: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub")


def _confirm(*, yes: bool) -> None:
    from stationmaster.errors import UserError

    if yes:
        return
    if not sys.stdin.isatty():
        raise UserError("nobody can be asked whether this is the right key", hint="add --yes once you have compared it")
    if not typer.confirm("Is this the machine's key?"):
        raise typer.Exit(1)
