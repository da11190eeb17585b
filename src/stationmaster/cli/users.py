"""`stationmaster users`: the people who own jobs, and how notifications reach them."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from stationmaster.cli.context import JsonOption, options_of, print_json, station_of
from stationmaster.money import Unit
from stationmaster.station.users import ListedUser, User, UserChanges

app = typer.Typer(
    help="Manage the people who own jobs and get notifications.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the person.")]
TelegramOption = Annotated[str | None, typer.Option(help="Id of their chat with the Telegram bot; '' removes it.")]
DiscordOption = Annotated[str | None, typer.Option(help="Their Discord user id; '' removes it.")]
EmailOption = Annotated[str | None, typer.Option(help="Their e-mail address; '' removes it.")]
InboxOption = Annotated[
    bool | None, typer.Option("--inbox/--no-inbox", help="Whether the inbox counts as a channel that reaches them.")
]
QuietOption = Annotated[
    str | None, typer.Option(help="Hours without notifications that can wait, e.g. 22:00-07:00; '' for none.")
]
ZoneOption = Annotated[str | None, typer.Option(help="Time zone of --quiet, e.g. Europe/Berlin.")]
MuteOption = Annotated[list[str] | None, typer.Option(help="Kind of notification not to send; repeatable.")]
UnmuteOption = Annotated[list[str] | None, typer.Option(help="Kind of notification to send again; repeatable.")]


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
    """Add a person.

    Telegram is tried first, then Discord, then e-mail, then the inbox.

    Examples:

      stationmaster users add ann --telegram-id 123456789

      stationmaster users add bob --discord-id 80351110224678912 --inbox --quiet 22:00-07:00 --time-zone Europe/Berlin
    """
    values = UserChanges(
        telegram_id=telegram_id,
        discord_id=discord_id,
        email=email,
        inbox=inbox,
        quiet=quiet,
        time_zone=time_zone,
        mute=tuple(mute or ()),
    )
    with station_of(context, wake=False) as station:
        user = station.users.add(name, values)
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
    """Change how notifications reach a person.

    Options that you leave out stay as they are.

    Examples:

      stationmaster users set ann --quiet 22:00-07:00 --mute epoch --mute milestone

      stationmaster users set ann --telegram-id '' --inbox
    """
    changes = UserChanges(
        telegram_id=telegram_id,
        discord_id=discord_id,
        email=email,
        inbox=inbox,
        quiet=quiet,
        time_zone=time_zone,
        mute=tuple(mute or ()),
        unmute=tuple(unmute or ()),
    )
    with station_of(context, wake=False) as station:
        user = station.users.change(name, changes)
    _answer(context, user, f"changed {name}", as_json=as_json)


@app.command("list")
def list_users(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the people who were added.

    The single user of the settings is not listed.

    Examples:

      stationmaster users list

      stationmaster users list --json
    """
    with station_of(context, wake=False) as station:
        found = station.users.listed()
        unit = station.credits.unit() if station.credits.are_on() else None
    if as_json or options_of(context).as_json:
        return print_json([{**dataclasses.asdict(one.user), **_credits_json(one, unit)} for one in found])
    for one in found:
        words = "" if unit is None or one.balance is None else f"; {unit.show(one.balance)}"
        typer.echo(f"{one.user.name:<20} {_channels(one.user)}{words}")
    if not found:
        typer.echo("no users; jobs belong to the single user of the settings (notify.telegram_id and others)")
    return None


@app.command("rm")
def remove(context: typer.Context, name: NameArgument, as_json: JsonOption = False) -> None:
    """Remove a person.

    Their jobs stay, without notifications.

    Examples:

      stationmaster users rm bob

      stationmaster users rm bob --json
    """
    with station_of(context, wake=False) as station:
        station.users.remove(name)
    if as_json or options_of(context).as_json:
        return print_json({"name": name, "removed": True})
    typer.echo(f"removed {name}")
    return None


def _credits_json(listed: ListedUser, unit: Unit | None) -> dict[str, object]:
    """The user's balance, if credits are on."""
    if unit is None or listed.balance is None:
        return {}
    return {"credits": unit.show(listed.balance), "balance_micros": listed.balance}


def _channels(user: User) -> str:
    channels = [
        f"{label} {value}"
        for label, value in (("telegram", user.telegram_id), ("discord", user.discord_id), ("email", user.email))
        if value
    ]
    words = ", ".join([*channels, *(["inbox"] if user.inbox else [])]) or "no channel"
    quiet = f"; quiet {user.quiet} {user.time_zone}" if user.quiet else ""
    return words + quiet + (f"; muted: {', '.join(user.muted)}" if user.muted else "")


def _answer(context: typer.Context, user: User, done: str, *, as_json: bool) -> None:
    if as_json or options_of(context).as_json:
        return print_json(dataclasses.asdict(user))
    typer.echo(f"{done}: {_channels(user)}")
    return None
