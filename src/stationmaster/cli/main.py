"""The command line's entry, and the one place where errors become words.

Everything that takes long to import is imported inside `main`: Ctrl-C may come before it is there.
"""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False  # as typing has it, which takes long itself
if TYPE_CHECKING:
    from collections.abc import Sequence

    from stationmaster.errors import StationmasterError

_FULL_DISK = {"SQLITE_FULL", "SQLITE_IOERR_SHMSIZE", "53100"}


def main(*, own_command: Sequence[str] | None = None) -> None:
    """Run a command; whatever goes wrong becomes one line and a hint, never a traceback.

    `own_command` is the command line that runs Stationmaster again, for example as a background worker; by default
    `python -m stationmaster` with this Python.
    """
    gc.disable()  # until the command runs: imports leave nothing to collect, and looking takes a seventh of the time
    try:
        code = _run(sys.argv[1:], own_command)
    except KeyboardInterrupt:
        code = 130
    finally:
        gc.freeze()  # everything goes with the process: Python need not search it for garbage first
    sys.exit(code)


def _run(words: list[str], own_command: Sequence[str] | None) -> int:
    from stationmaster.errors import StationmasterError

    try:
        _refuse_what_is_no_text(words)
        from stationmaster.cli.commands import command_tree

        code = command_tree()(_global_options_first(words), standalone_mode=False, obj=own_command)
        return code if isinstance(code, int) else 0
    except StationmasterError as error:
        return _tell_full_disk() if _is_full_disk(error) else _tell(error)
    except SystemExit as leaving:
        if isinstance(leaving.__context__, BrokenPipeError):
            # Somebody closed the pipe we print to, as `| head` does: no failure, but nothing more can be said there.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        raise
    except Exception as error:  # noqa: BLE001 (the program's top: keep the traceback for us, spare the person)
        code = _tell_of_the_command_line(error)
        return _tell_unforeseen(error) if code is None else code


def _refuse_what_is_no_text(words: list[str]) -> None:
    """A byte that is not UTF-8 fits into no name, no store and no message."""
    from stationmaster.errors import UserError

    for word in words:
        if not word.isascii() and any("\ud800" <= letter <= "\udfff" for letter in word):
            raise UserError(f"{word} is not UTF-8 text", hint="rename the file, or write the name in UTF-8")


def _global_options_first(words: list[str]) -> list[str]:
    """Where a person put `--home` does not matter; what follows `--` is not for us.

    >>> _global_options_first(["doctor", "--home", "/tmp/x", "--log-level=DEBUG", "--", "--home", "y"])
    ['--home', '/tmp/x', '--log-level=DEBUG', 'doctor', '--', '--home', 'y']
    """
    end = words.index("--") if "--" in words else len(words)
    ours, theirs = [], []
    rest = iter(words[:end])
    for word in rest:
        if word in ("--home", "--log-level") and (value := next(rest, None)) is not None:
            ours += [word, value]
        elif word.startswith(("--home=", "--log-level=")):
            ours.append(word)
        else:
            theirs.append(word)
    return [*ours, *theirs, *words[end:]]


def _tell(error: StationmasterError) -> int:
    _say(f"error: {error}" if error.exit_code else str(error))
    if error.hint:
        _say(f"hint: {error.hint}")
    return error.exit_code


def _is_full_disk(error: StationmasterError) -> bool:
    """Whether the store could not write because its disk is full, by the number that SQLite or PostgreSQL gives."""
    origin = getattr(error.__cause__, "orig", error.__cause__)
    told = {getattr(origin, "sqlite_errorname", None), getattr(origin, "sqlstate", None)}
    return not told.isdisjoint(_FULL_DISK)


def _tell_full_disk() -> int:
    from stationmaster.errors import DiskFull

    hint = "free some room, or move the home: --home"
    return _tell(DiskFull("the disk that the store lies on is full; nothing was changed", hint=hint))


def _say(line: str) -> None:
    from stationmaster.cli.context import printable

    print(printable(line), file=sys.stderr)


def _tell_of_the_command_line(error: Exception) -> int | None:
    """Words for what Typer says of the command line; None if it is something else.

    Newer versions of Typer bring a Click of their own: what an error can do tells it, not its class.
    """
    import typer

    if isinstance(error, typer.Abort):
        if isinstance(error.__context__, KeyboardInterrupt):
            return 130
        _say("error: aborted; nothing was changed")
        return 1
    if not hasattr(error, "format_message"):
        return None
    if type(error).__name__ == "NoArgsIsHelpError":  # the help instead of an error
        error.show()  # type: ignore[attr-defined]
    else:
        message = " ".join(str(error.format_message()).split())
        _say(f"error: {message[:1].lower()}{message[1:].removesuffix('.')}")
        if (context := getattr(error, "ctx", None)) is not None:
            _say(f"hint: run {context.command_path} -h")
    return int(getattr(error, "exit_code", 2))


def _tell_unforeseen(error: Exception) -> int:
    import errno  # these only on the way down
    import tempfile
    import traceback

    from stationmaster.errors import DiskFull

    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return _tell(DiskFull(f"{place}{error.strerror}", hint="free some room, or move the home: --home"))
        _say(f"error: {place}{error.strerror}")
        return 1
    with tempfile.NamedTemporaryFile("w", prefix="stationmaster-crash-", suffix=".txt", delete=False) as file:
        traceback.print_exception(error, file=file)
    _say(f"error: something went wrong that should not have: {type(error).__name__}: {error}")
    _say(f"hint: please report it with {file.name}")
    return 70
