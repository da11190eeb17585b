"""`stationmaster users`: the people who own jobs, and how notifications reach them."""

from __future__ import annotations

from typing import Annotated

import typer

from stationmaster.cli.context import JsonOption, options_of, print_document, print_json, station_of
from stationmaster.cli.help_pages import CommandGroup
from stationmaster.cli.table import Column, print_table
from stationmaster.model import Role
from stationmaster.station.users import User, UserChanges
from stationmaster.station.wire.users import ListedUserDocument, UserDocument

app = CommandGroup(help="Manage the people who own jobs and get notifications.")

RoleOption = Annotated[
    Role | None,
    typer.Option(metavar="|".join(Role), help="What they may do over HTTP: everything, train, or only look."),
]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the person.")]
TelegramOption = Annotated[str | None, typer.Option(help="Id of their chat with the Telegram bot; '' removes it.")]
DiscordOption = Annotated[str | None, typer.Option(help="Their Discord user id; '' removes it.")]
EmailOption = Annotated[str | None, typer.Option(help="Their e-mail address; '' removes it.")]
InboxOption = Annotated[
    bool | None, typer.Option("--inbox/--no-inbox", help="Whether the inbox counts as a channel that reaches them.")
]
QuietOption = Annotated[
    str | None,
    typer.Option("--quiet-hours", help="Hours without notifications that can wait, e.g. 22:00-07:00; '' for none."),
]
ZoneOption = Annotated[str | None, typer.Option(help="Time zone of --quiet-hours, e.g. Europe/Berlin.")]
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
    role: RoleOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a person.

    Telegram is tried first, then Discord, then e-mail, then the inbox. Without --role they are a user, who may train.

    Examples:

      stationmaster users add ann --telegram-id 123456789

      stationmaster users add bob --discord-id 80351110224678912 --quiet-hours 22:00-07:00 --time-zone Europe/Berlin
    """
    values = UserChanges(
        telegram_id=telegram_id,
        discord_id=discord_id,
        email=email,
        inbox=inbox,
        quiet=quiet,
        time_zone=time_zone,
        mute=tuple(mute or ()),
        role=role,
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
    role: RoleOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change how notifications reach a person, or what they may do.

    Options that you leave out stay as they are.

    Examples:

      stationmaster users set ann --quiet-hours 22:00-07:00 --mute epoch --mute milestone

      stationmaster users set ann --telegram-id '' --inbox --role viewer
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
        role=role,
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
        unknown = {"credits", "balance_micros"} if unit is None else set()
        documents = [ListedUserDocument.listed(one, unit) for one in found]
        return print_json([one.model_dump(mode="json", exclude=unknown) for one in documents])
    if found:
        columns = (Column("NAME"), Column("ROLE"), Column("REACHED BY", shrinks_to=16), Column("CREDITS", right=True))
        balances = ["" if unit is None or one.balance is None else unit.show(one.balance) for one in found]
        rows = [
            (one.user.name, one.user.role, _channels(one.user), balance)
            for one, balance in zip(found, balances, strict=True)
        ]
        # A column of credits only where there are credits.
        print_table(columns if unit else columns[:-1], rows if unit else [row[:-1] for row in rows])
    else:
        typer.echo("no users; jobs belong to the single user of the settings (notify.telegram_id and others)")
    return None


@app.command("show")
def show(context: typer.Context, name: NameArgument, as_json: JsonOption = False) -> None:
    """Show a person's role and channels.

    Examples:

      stationmaster users show ann

      stationmaster users show ann --json
    """
    with station_of(context, wake=False) as station:
        user = station.users.find(name)
    _answer(context, user, name, as_json=as_json)


@app.command("rm")
def remove(context: typer.Context, name: NameArgument, as_json: JsonOption = False) -> None:
    """Remove a person.

    Their jobs stay, without notifications; their tokens stop working.

    Examples:

      stationmaster users rm bob

      stationmaster users rm bob --json
    """
    with station_of(context, wake=False) as station:
        station.users.remove(name)
    if as_json or options_of(context).as_json:
        from stationmaster.cli.answers import RemovedUser

        return print_document(RemovedUser(name=name))
    typer.echo(f"removed {name}")
    return None


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
        return print_json(UserDocument.of(user).model_dump(mode="json"))
    role = "" if user.role is Role.USER else f"{user.role}, "
    typer.echo(f"{done}: {role}{_channels(user)}")
    return None
