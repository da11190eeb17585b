"""`stationmaster notify`: test the channels, and read the inbox."""

from __future__ import annotations

from typing import Annotated

import typer

from stationmaster.cli.context import JsonOption, options_of, print_json, print_lines, station_of
from stationmaster.cli.help_pages import CommandGroup
from stationmaster.station.wire.notifications import DeliveryDocument, NoteDocument
from stationmaster.times import time_text

app = CommandGroup(help="Send test notifications, and read the inbox.")

UserOption = Annotated[str, typer.Option(help="User; `me` is the single user of the settings.")]


@app.command("test")
def try_channels(
    context: typer.Context,
    user: UserOption = "me",
    operators: Annotated[bool, typer.Option("--operators", help="Use the operators' channels instead.")] = False,
    message: Annotated[str, typer.Option(help="Text to send.")] = "Hello from Stationmaster: this channel works.",
    as_json: JsonOption = False,
) -> None:
    """Send a test notification through every channel of a user.

    Exit code 50 if one fails.

    Examples:

      stationmaster notify test

      stationmaster notify test --operators
    """
    with station_of(context, wake=False) as station:
        channels = station.notifications
        deliveries = channels.try_operator_channels(message) if operators else channels.try_channels(user, message)
    if as_json or options_of(context).as_json:
        print_json([DeliveryDocument.of(delivery).model_dump(mode="json") for delivery in deliveries])
    else:
        for delivery in deliveries:
            print_lines([f"{delivery.channel:<10} {'sent' if delivery.success else delivery.problem}"])
    if not all(delivery.success for delivery in deliveries):
        raise typer.Exit(50)


@app.command("inbox")
def inbox(
    context: typer.Context,
    user: UserOption = "me",
    everything: Annotated[bool, typer.Option("--all", "-a", help="Also show messages that were read.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Do not mark them as read.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=1_000_000, help="Show at most this many messages.")] = 50,
    as_json: JsonOption = False,
) -> None:
    """Show a user's messages and mark them as read.

    Examples:

      stationmaster notify inbox

      stationmaster notify inbox --user ann --all --json
    """
    with station_of(context, wake=False) as station:
        notes = station.notifications.inbox(user, with_read=everything, limit=limit)
        now = station.now()
        if notes and not keep:
            station.notifications.mark_read(user, up_to=max(note.id or 0 for note in notes))
    if as_json or options_of(context).as_json:
        return print_json([NoteDocument.of(note).model_dump(mode="json") for note in notes])
    for note in notes:
        typer.echo(f"{time_text(note.at, now=now)}  {note.kind}")
        typer.echo("".join(f"  {line}".rstrip() + "\n" for line in note.text.splitlines()))
    if not notes:
        typer.echo("no messages" if everything else "no unread messages; --all shows the others")
    return None
