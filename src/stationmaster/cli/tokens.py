"""`stationmaster tokens`: how programs and browsers prove to the HTTP service who they are."""

from __future__ import annotations

from typing import Annotated

import typer

from stationmaster.cli.context import JsonOption, named, options_of, print_json, station_of
from stationmaster.cli.help_pages import CommandGroup
from stationmaster.cli.table import Column, Row, print_table
from stationmaster.durations import format_duration, parse_duration
from stationmaster.errors import UserError
from stationmaster.model import SINGLE_USER, Right
from stationmaster.station.tokens import NewToken, Token
from stationmaster.station.wire.tokens import CreatedTokenDocument, SignInLinkDocument, TokenDocument
from stationmaster.times import time_text

app = CommandGroup(help="Manage tokens, which programs send to the HTTP service.")

_COLUMNS = (
    Column("ID"),
    Column("NAME", shrinks_to=8),
    Column("USER"),
    Column("RIGHTS", leaves=2),
    Column("EXPIRES", leaves=1),
    Column("LAST USED", leaves=3),
)

UserOption = Annotated[str, typer.Option(help="User that it is for; `me` is you.")]


@app.command("create")
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is for, e.g. 'telegram bot'.")],
    user: UserOption = SINGLE_USER,
    right: Annotated[
        list[Right] | None,
        typer.Option(metavar="|".join(Right), help="Right that it has; repeatable. Default: all of the user's role."),
    ] = None,
    expires: Annotated[str | None, typer.Option(help="Time until it expires, e.g. 90d. Default: never.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Create a token and print its secret, once.

    Only a hash of the secret is stored.

    Examples:

      TOKEN=$(stationmaster tokens create "telegram bot")

      stationmaster tokens create dashboard --user ann --right read --expires 90d
    """
    rights = frozenset(right) if right else frozenset(Right)
    wanted = NewToken(name=name, user=user, rights=rights, expires_in=_seconds(expires))
    with station_of(context, wake=False) as station:
        created = station.tokens.create(wanted)
    if as_json or options_of(context).as_json:
        return print_json(CreatedTokenDocument.created(created).model_dump(mode="json"))
    token = created.token
    typer.echo(f"token {token.id} of {token.user} ({', '.join(sorted(token.rights))}); it is not shown again", err=True)
    typer.echo(created.secret)
    return None


@app.command("list")
def list_tokens(
    context: typer.Context,
    user: Annotated[str | None, typer.Option(help="Only this user's; `me` is you.", show_default=False)] = None,
    as_json: JsonOption = False,
) -> None:
    """List tokens, newest first.

    Expired and revoked ones are listed as well.

    Examples:

      stationmaster tokens list

      stationmaster tokens list --user ann --json
    """
    with station_of(context, wake=False) as station:
        found, now = station.tokens.listed(user), station.now()
    if as_json or options_of(context).as_json:
        return print_json([TokenDocument.of(one).model_dump(mode="json") for one in found])
    if found:
        print_table(_COLUMNS, (_row(one, now=now) for one in found))
    else:
        typer.echo("no tokens; to create one, run stationmaster tokens create NAME")
    return None


@app.command("revoke")
def revoke(
    context: typer.Context,
    token: Annotated[
        str, typer.Argument(metavar="ID", help="Id of the token.", callback=named("token", "tokens list"))
    ],
    as_json: JsonOption = False,
) -> None:
    """Revoke a token, and sign out the browsers that it signed in.

    Examples:

      stationmaster tokens revoke 5f0c2a9d1b7e

      stationmaster tokens revoke 5f0c2a9d1b7e --json
    """
    with station_of(context, wake=False) as station:
        revoked = station.tokens.revoke(token)
    if as_json or options_of(context).as_json:
        return print_json(TokenDocument.of(revoked).model_dump(mode="json"))
    typer.echo(f"revoked {revoked.id} ({revoked.name} of {revoked.user})")
    return None


@app.command("link")
def link(context: typer.Context, user: UserOption = SINGLE_USER, as_json: JsonOption = False) -> None:
    """Print a link that signs a browser in, once.

    The address is that of --server, else serve.public_url, else this computer's.

    Examples:

      stationmaster tokens link

      stationmaster tokens link --user ann --json
    """
    with station_of(context, wake=False) as station:
        made, now = station.tokens.create_link(user), station.now()
    if as_json or options_of(context).as_json:
        return print_json(SignInLinkDocument.of(made).model_dump(mode="json"))
    lasts = format_duration(max(0.0, made.expires_at - now))
    typer.echo(f"signs a browser in as {made.user}, once, within {lasts}:", err=True)
    typer.echo(made.url)
    return None


def _state(token: Token, *, now: float) -> str:
    if token.revoked_at is not None:
        return "revoked"
    if token.expires_at is None:
        return "never"
    word = "expired" if token.expires_at <= now else "until"
    return f"{word} {time_text(token.expires_at, now=now)}"


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return parse_duration(text)
    except ValueError as problem:
        raise UserError(f"expires: {problem}", hint="for example: 90d; leave it out if it never expires") from None


def _row(token: Token, *, now: float) -> Row:
    used = "never" if token.last_used_at is None else time_text(token.last_used_at, now=now)
    return token.id, token.name, token.user, ",".join(sorted(token.rights)), _state(token, now=now), used
