"""What every command needs: the global options, the settings, the station.

`stationmaster --help` imports this module, so settings and store are imported only by the functions that need them.
"""

from __future__ import annotations

import errno
import math
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stationmaster.cli.speaking import is_quiet, note
from stationmaster.errors import NotFound, NotSignedIn, StationmasterError, UserError
from stationmaster.printable import json_text, one_line
from stationmaster.station import LONGEST_NAME

if TYPE_CHECKING:
    from pydantic import BaseModel  # only JSON needs it

    from stationmaster.station.base import Station  # imports every noun; most commands need few
    from stationmaster.station.local.station import LocalStation

_TOKEN_HINT = "on the server, `stationmaster tokens create` makes a token; set STATIONMASTER_TOKEN to it"


def json_option(help_text: str) -> Any:
    """A command's own `--json`, which the global one sets too."""
    return typer.Option("--json", help=help_text, callback=_or_global_json)


def _or_global_json(context: typer.Context, value: bool) -> bool:
    options = context.find_object(Options)  # None while a shell completes the command line
    return value or (options is not None and options.as_json)


JsonOption = Annotated[bool, json_option("Print JSON.")]


def named(kind: str, list_command: str) -> Callable[[str | None], str | None]:
    """A callback for arguments that name something: raises NotFound for an empty or overlong name."""

    def checked(value: str | None) -> str | None:
        if value is not None and not (value.strip() and len(value) <= LONGEST_NAME):
            problem = f"there is no {kind} {value[:40]}…" if value.strip() else f"the name of the {kind} is empty"
            raise NotFound(problem, hint=f"run `stationmaster {list_command}` to see them")
        return value

    return checked


JobArgument = Annotated[
    str,
    typer.Argument(
        metavar="JOB",
        help="Id of the job or its beginning, or its name: the newest of that name.",
        callback=named("job", "jobs --all"),
    ),
]


def given_path(value: str | Path) -> Path:
    """A parser for paths: raises UserError for an empty one, which would mean the current folder."""
    if value == "":
        raise UserError("the path is empty", hint="pass a path; the current folder is .")
    return Path(value)


def finite(value: float | None) -> float | None:
    """A callback for numbers: Typer itself accepts `inf` and `nan`."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number")
    return value


@contextmanager
def with_hint(hint: str, *kinds: type[StationmasterError], unusable: type[UserError] | None = None) -> Iterator[None]:
    """Add the hint to errors of these kinds that have none, and raise errors of the system as `unusable`."""
    try:
        yield
    except kinds as error:
        error.hint = error.hint or hint
        raise
    except OSError as problem:
        if unusable is None or problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EPIPE) or not problem.strerror:
            raise
        place = f"{problem.filename}: " if problem.filename else ""
        raise unusable(f"{place}{problem.strerror}", hint=hint) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options given before the command."""

    as_json: bool
    home: Path | None
    log_level: str | None
    server: str | None
    environ: Mapping[str, str]
    #: The command line that runs Stationmaster again; arguments are added to it.
    own_command: tuple[str, ...]

    def machine_path(self) -> str:
        """The PATH of simulated machines: our own interpreter first, so that recipes find what is installed with us."""
        own = str(Path(sys.executable).parent)
        return f"{own}:{self.environ.get('PATH', '/usr/local/bin:/usr/bin:/bin')}"

    def for_worker(self) -> list[str]:
        """The start of a background worker's command line, with the same options; the caller adds the home."""
        return [*self.own_command, *([] if self.log_level is None else ["--log-level", self.log_level])]


def options_of(context: typer.Context) -> Options:
    found = context.find_object(Options)
    assert found is not None, "the root callback has run"
    return found


@contextmanager
def station_of(context: typer.Context, *, wake: bool = True) -> Iterator[Station]:
    """Open the station that the options and settings name: a server's, or the one of this home.

    With `wake`, start a worker in this home if work is left and none is alive, and print that.
    """
    from stationmaster.cli.logging import command_logging
    from stationmaster.cli.progress_lines import wait_visibly
    from stationmaster.station.local.station import LocalStation
    from stationmaster.station.opening import open_station_or_server

    options = options_of(context)
    command_logging(options.log_level)
    station = open_station_or_server(
        options.environ, home=options.home, log_level=options.log_level, server=options.server, pause=wait_visibly
    )
    try:
        if wake and isinstance(station, LocalStation):
            _wake_worker(station, options)
        yield station
    except NotSignedIn as refused:
        refused.hint = _TOKEN_HINT
        raise
    finally:
        station.close()


@contextmanager
def local_station_of(context: typer.Context, *, wake: bool = True) -> Iterator[LocalStation]:
    """Open the station of this home, also where a server is set: for what only this computer can do."""
    from stationmaster.cli.logging import command_logging
    from stationmaster.cli.progress_lines import wait_visibly
    from stationmaster.station.local.station import open_station

    options = options_of(context)
    command_logging(options.log_level)
    station = open_station(options.environ, home=options.home, log_level=options.log_level, pause=wait_visibly)
    try:
        if wake:
            _wake_worker(station, options)
        yield station
    finally:
        station.close()


def has_server(context: typer.Context) -> bool:
    """Whether commands ask a server instead of this home. Raises ConfigInvalid."""
    from stationmaster.station.opening import is_server_set

    options = options_of(context)
    return is_server_set(options.environ, home=options.home, log_level=options.log_level, server=options.server)


def require_this_computer(context: typer.Context, command: str) -> None:
    """Raises UserError if a server is set: the command can only act on this computer."""
    if has_server(context):
        raise UserError(
            f"`{command}` runs on this computer, not on a server",
            hint="leave out --server, and unset STATIONMASTER_SERVER",
        )


def _wake_worker(station: LocalStation, options: Options) -> None:
    woken = station.processes.wake_worker(options.for_worker())
    if woken is not None:
        work = f"{woken.waiting} job(s), machine(s) or message(s) had no worker"
        note(f"{work}; started one (pid {woken.pid}, log {woken.log})")


def print_json(value: Any, *, indent: int | None = 2) -> None:
    sys.stdout.write(json_text(value, indent=indent) + "\n")


def print_document(document: BaseModel) -> None:
    print_json(document.model_dump(mode="json"))


def print_lines(lines: Iterable[str]) -> None:
    """Print each as one line, whatever others wrote into it."""
    for line in lines:
        typer.echo(one_line(line))


def print_sentences(lines: Iterable[str]) -> None:
    """As `print_lines`, but a terminal that is too narrow gets a line in several, broken between words.

    Not for commands: a person copies them as one line.
    """
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in lines:
        typer.echo(wrapped(one_line(line), width))


def wrapped(line: str, width: int | None) -> str:
    """The line broken between words, and indented like the text beside its first word.

    >>> print(wrapped("  limit  4h and $0.50, then it is stopped", 24))
      limit  4h and $0.50,
             then it is
             stopped
    """
    if width is None or len(line) <= width:
        return line
    beside = re.match(r" *\S+  +|( *)", line)
    indent = beside.end() if beside is not None and beside.end() < width // 2 else 0
    first, rest = line[:indent], line[indent:]
    lines = textwrap.wrap(rest, max(1, width - indent), break_on_hyphens=False, break_long_words=False)
    return first + ("\n" + " " * indent).join(lines)


def print_note(context: typer.Context, job_id: str, happens: str, *, as_json: bool) -> None:
    """Print what happens to a job now."""
    if as_json or options_of(context).as_json:
        from stationmaster.cli.answers import JobNote

        print_document(JobNote(id=job_id, note=happens))
    elif not is_quiet():
        print_lines([f"{job_id}: {happens}"])
