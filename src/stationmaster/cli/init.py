"""`stationmaster init`: a few questions, then a config file with every setting in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stationmaster.cli.context import JsonOption, options_of, print_document, print_lines
from stationmaster.cli.init_questions import TerminalConfidant, ask_all
from stationmaster.cli.person import can_converse
from stationmaster.cli.speaking import extra, is_quiet, note
from stationmaster.errors import UserError

if TYPE_CHECKING:
    from stationmaster.station.local.config_writer import WrittenConfig


def init(
    context: typer.Context,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Set this setting and do not ask for it; may be repeated."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file; a copy of it is kept.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask: take defaults and --set.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a config file, after a few questions.

    The file is config.toml in the home, or the one in STATIONMASTER_CONFIG. It has every setting with its meaning;
    those that you did not choose are commented out. Keys are typed hidden; only you can read the file.

    Examples:

      stationmaster init

      stationmaster init --yes --set provider=vastai --set vastai.max_bid_per_hour=0.60 --set limits.daily_spend=20
    """
    from stationmaster.station.local.config_writer import ConfigWriter, parsed_assignment

    options = options_of(context)
    writer = ConfigWriter(options.environ, home=options.home)
    writer.require_free(force=force)
    chosen: dict[str, Any] = dict(parsed_assignment(text) for text in assignments or ())
    if not yes and not can_converse(as_json=as_json, yes=False):
        raise UserError(
            "the questions need a terminal for input and output, without --json and --quiet",
            hint="pass --yes to take the defaults; --set NAME=VALUE sets others",
        )
    if not yes:
        chosen = ask_all(TerminalConfidant(), writer, chosen, environ=options.environ)
    written, steps = writer.write(chosen, force=force), writer.next_steps(chosen)
    if as_json:
        from stationmaster.cli.answers import WrittenSettings

        kept = None if written.kept is None else str(written.kept)
        names = tuple(sorted(chosen))
        return print_document(WrittenSettings(file=str(written.path), settings=names, kept=kept, next=tuple(steps)))
    return _tell(written, steps)


def _tell(written: WrittenConfig, steps: Sequence[str]) -> None:
    if is_quiet():
        return print_lines([str(written.path)])
    if written.kept is not None:
        note(f"the old file is {written.kept}")
    print_lines([f"wrote {written.path}; only you can read it"])
    extra("next:")
    for step in steps:
        extra(f"  {step}")
    return None
