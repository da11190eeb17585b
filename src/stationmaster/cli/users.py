"""`stationmaster users`: the people who are told of their jobs, and how."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stationmaster.cli.context import JsonOption, options_of, print_json, station_of

if TYPE_CHECKING:
    from stationmaster.station.local.station import LocalStation
    from stationmaster.store.users import User

app = typer.Typer(help="People who are told of their jobs, and how.", no_args_is_help=True, rich_markup_mode=None)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="What the person is called.")]
TelegramOption = Annotated[str | None, typer.Option(help="Their chat with the Telegram bot; '' takes it away.")]
DiscordOption = Annotated[str | None, typer.Option(help="Their number at Discord; '' takes it away.")]
EmailOption = Annotated[str | None, typer.Option(help="Their address; '' takes it away.")]
InboxOption = Annotated[
    bool | None, typer.Option("--inbox/--no-inbox", help="Whether the inbox counts as a way to reach them.")
]
QuietOption = Annotated[str | None, typer.Option(help="Hours without what can wait, as 22:00-07:00; '' for none.")]
ZoneOption = Annotated[str | None, typer.Option(help="Where those hours are, as Europe/Berlin.")]
MuteOption = Annotated[list[str] | None, typer.Option(help="A kind of message that is not sent; repeat for more.")]
UnmuteOption = Annotated[list[str] | None, typer.Option(help="A kind of message that is sent again.")]


@app.command("add")
def add(
    context: typer.Context,
    name: NameArgument,
    telegram_id: TelegramOption = None,
    discord_id: DiscordOption = None,
    email: EmailOption = None,
    inbox: InboxOption = None,
    quiet: QuietOption = None,
    time_zone: ZoneOption = None,
    mute: MuteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a person. Telegram is tried first, then Discord, then e-mail, then the inbox.

    Examples:

      stationmaster users add ann --telegram-id 123456789

      stationmaster users add bob --discord-id 80351110224678912 --inbox --quiet 22:00-07:00 --time-zone Europe/Berlin
    """
    from stationmaster.errors import UserError
    from stationmaster.store.users import User

    _require_free_name(name)
    with station_of(context, wake=False) as station:
        if station.store.users.find(name) is not None:
            raise UserError(f"there is a user {name} already", hint=f"change them: stationmaster users set {name} …")
        given = {"telegram_id": telegram_id, "discord_id": discord_id, "email": email, "inbox": inbox}
        user = _changed(User(name=name), {**given, "quiet": quiet, "time_zone": time_zone}, mute=mute, unmute=None)
        station.store.users.put(user)
    _answer(context, user, f"added {name}", as_json=as_json)


@app.command("set")
def change(
    context: typer.Context,
    name: NameArgument,
    telegram_id: TelegramOption = None,
    discord_id: DiscordOption = None,
    email: EmailOption = None,
    inbox: InboxOption = None,
    quiet: QuietOption = None,
    time_zone: ZoneOption = None,
    mute: MuteOption = None,
    unmute: UnmuteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change how a person is told; what is not given stays as it is.

    Examples:

      stationmaster users set ann --quiet 22:00-07:00 --mute epoch --mute milestone

      stationmaster users set ann --telegram-id '' --inbox
    """
    from stationmaster.errors import NotFound

    _require_free_name(name)
    with station_of(context, wake=False) as station:
        found = station.store.users.find(name)
        if found is None:
            raise NotFound(f"there is no user {name}", hint=f"add them: stationmaster users add {name} …")
        given = {"telegram_id": telegram_id, "discord_id": discord_id, "email": email, "inbox": inbox}
        user = _changed(found, {**given, "quiet": quiet, "time_zone": time_zone}, mute=mute, unmute=unmute)
        station.store.users.put(user)
    _answer(context, user, f"changed {name}", as_json=as_json)


@app.command("list")
def list_users(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the people who were added. The single user is not among them: they are in the settings.

    Examples:

      stationmaster users list

      stationmaster users list --json
    """
    with station_of(context, wake=False) as station:
        found = station.store.users.listed()
        purses = _purses(station, found)
    if as_json or options_of(context).as_json:
        return print_json([{**dataclasses.asdict(user), **purses.get(user.name, {})} for user in found])
    for user in found:
        words = f"; {purses[user.name]['credits']}" if user.name in purses else ""
        typer.echo(f"{user.name:<20} {_ways(user)}{words}")
    if not found:
        typer.echo("no users; jobs belong to the single user of the settings (notify.telegram_id and others)")
    return None


@app.command("rm")
def remove(context: typer.Context, name: NameArgument, as_json: JsonOption = False) -> None:
    """Remove a person. Their jobs stay; messages about them then reach nobody.

    Examples:

      stationmaster users rm bob

      stationmaster users rm bob --json
    """
    with station_of(context, wake=False) as station:
        station.store.users.remove(name)
    if as_json or options_of(context).as_json:
        return print_json({"name": name, "removed": True})
    typer.echo(f"removed {name}")
    return None


def _purses(station: LocalStation, found: list[User]) -> dict[str, dict[str, Any]]:
    """What each can spend, where that matters."""
    from stationmaster.control.policy import billing_of

    billing = billing_of(station.settings)
    if billing is None:
        return {}
    accounts = [station.store.ledger.account(user.name) for user in found]
    return {
        account.user: {"credits": billing.unit.show(account.balance), "balance_micros": account.balance}
        for account in accounts
    }


def _require_free_name(name: str) -> None:
    from stationmaster.control.messages.address_book import OPERATORS, SINGLE_USER
    from stationmaster.errors import UserError

    if name in (SINGLE_USER, OPERATORS):
        raise UserError(f"{name} is in the settings", hint="see the settings notify.… in docs/reference/settings.md")
    if not name.strip() or len(name) > 100 or not name.isprintable():
        raise UserError("a user's name has 1 to 100 printable characters", hint="as in: stationmaster users add ann")


def _changed(user: User, given: dict[str, Any], *, mute: list[str] | None, unmute: list[str] | None) -> User:
    """The person with what was given; an empty text takes something away."""
    from stationmaster.settings import (
        checked_discord_id,
        checked_email,
        checked_hours,
        checked_telegram_id,
        checked_zone,
    )

    checks = {
        "telegram_id": checked_telegram_id,
        "discord_id": checked_discord_id,
        "email": checked_email,
        "quiet": checked_hours,
        "time_zone": checked_zone,
    }
    for name, check in checks.items():
        if given[name]:
            _checked(name, check, given[name])
    values: dict[str, Any] = {key: value or None for key, value in given.items() if value is not None}
    for name in ("inbox", "time_zone"):  # of these there is always one
        values[name] = getattr(user, name) if given[name] in (None, "") else given[name]
    muted = (set(user.muted) | set(_kinds(mute))) - set(_kinds(unmute))
    return dataclasses.replace(user, **values, muted=tuple(sorted(muted)))


def _checked(name: str, check: Callable[[str], str], value: str) -> None:
    from stationmaster.errors import UserError

    try:
        check(value)
    except ValueError as problem:
        option = name.replace("_", "-")
        raise UserError(f"--{option}: {problem}", hint=f"--{option} '' takes it away") from None


def _kinds(names: list[str] | None) -> list[str]:
    from stationmaster.errors import UserError
    from stationmaster.notify.templates import PRIORITIES

    for name in names or ():
        if name not in PRIORITIES:
            raise UserError(f"{name} is not a kind of message", hint=f"use one of: {', '.join(PRIORITIES)}")
    return names or []


def _ways(user: User) -> str:
    ways = [
        f"{label} {value}"
        for label, value in (("telegram", user.telegram_id), ("discord", user.discord_id), ("email", user.email))
        if value
    ]
    words = ", ".join([*ways, *(["inbox"] if user.inbox else [])]) or "no way to reach them"
    quiet = f"; quiet {user.quiet} {user.time_zone}" if user.quiet else ""
    return words + quiet + (f"; without {', '.join(user.muted)}" if user.muted else "")


def _answer(context: typer.Context, user: User, said: str, *, as_json: bool) -> None:
    if as_json or options_of(context).as_json:
        return print_json(dataclasses.asdict(user))
    typer.echo(f"{said}: {_ways(user)}")
    return None
