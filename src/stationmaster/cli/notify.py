"""`stationmaster notify`: whether people can be reached, and what they were told."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from stationmaster.cli.context import JsonOption, options_of, print_json, station_of

if TYPE_CHECKING:
    from stationmaster.control.messages.courier import Delivery
    from stationmaster.station.local.station import LocalStation

app = typer.Typer(help="Try the ways to people, and read the inbox.", no_args_is_help=True, rich_markup_mode=None)

UserOption = Annotated[str, typer.Option(help="Whose; `me` is the single user of the settings.")]


@app.command("test")
def try_every_way(
    context: typer.Context,
    user: UserOption = "me",
    operators: Annotated[bool, typer.Option("--operators", help="The operators' ways instead.")] = False,
    message: Annotated[str, typer.Option(help="The words to send.")] = "Hello from Stationmaster: this way works.",
    as_json: JsonOption = False,
) -> None:
    """Send a message by every way that leads to a person, and say which work. Exit code 50 if one does not.

    Examples:

      stationmaster notify test

      stationmaster notify test --operators
    """
    with station_of(context, wake=False) as station:
        deliveries = asyncio.run(_try_each(station, user, message, operators=operators))
    if as_json or options_of(context).as_json:
        print_json([dataclasses.asdict(delivery) for delivery in deliveries])
    else:
        for delivery in deliveries:
            typer.echo(f"{delivery.channel:<10} {'sent' if delivery.success else delivery.problem}")
    if not all(delivery.success for delivery in deliveries):
        raise typer.Exit(50)


@app.command("inbox")
def inbox(
    context: typer.Context,
    user: UserOption = "me",
    everything: Annotated[bool, typer.Option("--all", "-a", help="Messages that were read, too.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave them unread.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=1_000_000, help="The newest so many.")] = 50,
    as_json: JsonOption = False,
) -> None:
    """Show the messages of a person; they count as read then.

    Examples:

      stationmaster notify inbox

      stationmaster notify inbox --user ann --all --json
    """
    from stationmaster.cli.render import instant

    with station_of(context, wake=False) as station:
        _require_known(station, user)
        notes = station.store.inbox.of_user(user, unread_only=not everything, limit=limit)
        if notes and not keep:
            station.store.inbox.mark_read(user, up_to=max(note.id or 0 for note in notes))
    if as_json or options_of(context).as_json:
        return print_json([dataclasses.asdict(note) for note in notes])
    for note in notes:
        typer.echo(f"{instant(note.at)}  {note.kind}")
        typer.echo("".join(f"  {line}".rstrip() + "\n" for line in note.text.splitlines()))
    if not notes:
        typer.echo("no messages" if everything else "no unread messages; --all shows the others")
    return None


def _require_known(station: LocalStation, user: str) -> None:
    """Raises NotFound for somebody who was never here; messages of one who was removed can still be read."""
    from stationmaster.control.messages.address_book import OPERATORS, SINGLE_USER
    from stationmaster.errors import NotFound

    if user in (SINGLE_USER, OPERATORS) or station.store.users.find(user) is not None:
        return
    if not station.store.inbox.of_user(user, unread_only=False, limit=1):
        raise NotFound(f"there is no user {user}", hint="run `stationmaster users list` to see them")


async def _try_each(station: LocalStation, user: str, text: str, *, operators: bool) -> list[Delivery]:
    import secrets

    from stationmaster.control.messages.post import open_post
    from stationmaster.errors import NotifyRefused
    from stationmaster.notify.base import Rendered
    from stationmaster.notify.markup import clean

    post = open_post(station.settings, station.store)
    key = f"{station.store.installation_id}.test.{secrets.token_hex(8)}"
    message = Rendered(key=key, kind="message", text=clean(text), at=station.now())
    try:
        recipients = post.book.operators() if operators else (post.book.owner(user),)
        if not any(recipient.routes for recipient in recipients):
            raise NotifyRefused(
                f"No notification channel for user {user}",
                hint=f"give them one: stationmaster users set {user} --telegram-id …, and set the bot's token",
            )
        return [each for one in recipients for each in await post.courier.try_each(one, message)]
    finally:
        await post.close()
