"""The entry point of the command line, and the only place where errors are printed.

Slow imports happen inside `main`, where Ctrl-C is handled.
"""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False  # without importing typing, which is slow
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from stationmaster.errors import StationmasterError

_DISK_HINT = "free some disk space, or choose a home on another disk: --home"
_GLOBAL_OPTIONS = ("--home", "--log-level", "--server")
_GLOBAL_SWITCHES = ("--quiet", "-q")
_FULL_DISK = {"SQLITE_FULL", "SQLITE_IOERR_SHMSIZE", "53100"}


def main(*, own_command: Sequence[str] | None = None) -> None:
    """Run a command; any error is printed as one line and a hint, never as a traceback.

    `own_command` is the command line that runs Stationmaster again, for example as a background worker; by default
    `python -P -m stationmaster` with this Python.
    """
    gc.disable()  # until the command runs: imports leave no garbage, and a collection takes a seventh of the time
    try:
        if sys.argv[1:2] == ["__complete"]:  # a shell asks what can follow; nothing else may be imported or printed
            from stationmaster.cli.completion.answering import answer

            sys.exit(answer(sys.argv[2:], os.environ))
        from stationmaster.cli.file_modes import write_privately
        from stationmaster.cli.speaking import speak
        from stationmaster.cli.terminal_output import end_output, guard_terminal

        write_privately()
        guard_terminal()
        speak(os.environ, quiet=False)  # until the options are known
        code = _run(sys.argv[1:], own_command)
        end_output()
    except KeyboardInterrupt:
        code = 130
    finally:
        gc.freeze()  # the process ends: Python need not collect garbage first
    sys.exit(code)


def _run(words: list[str], own_command: Sequence[str] | None) -> int:
    from stationmaster.errors import StationmasterError

    try:
        _require_utf8(words)
        from stationmaster.cli.commands import command_tree

        code = command_tree()(_global_options_first(words), standalone_mode=False, obj=own_command)
        return code if isinstance(code, int) else 0
    except StationmasterError as error:
        return _print_full_disk() if _is_full_disk(error) else _print_error(error)
    except SystemExit as leaving:
        if isinstance(leaving.__context__, BrokenPipeError):
            # The reader closed the pipe, as `| head` does: not a failure, but nothing more can be printed there.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        raise
    except Exception as error:  # noqa: BLE001 (top of the program: the traceback goes to a file)
        code = _print_usage_error(error)
        return _print_unexpected(error) if code is None else code


def _require_utf8(words: list[str]) -> None:
    """Raises UserError for bytes that are not UTF-8: no name, store or message can hold them."""
    from stationmaster.errors import UserError

    for word in words:
        if not word.isascii() and any("\ud800" <= letter <= "\udfff" for letter in word):
            raise UserError(f"{word} is not UTF-8 text", hint="rename the file, or write the name in UTF-8")


def _global_options_first(words: list[str]) -> list[str]:
    """Accept `--home`, `--log-level`, `--server` and `--quiet` anywhere before `--`.

    >>> _global_options_first(["doctor", "--home", "/tmp/x", "-q", "--log-level=DEBUG", "--", "--home", "y"])
    ['--home', '/tmp/x', '-q', '--log-level=DEBUG', 'doctor', '--', '--home', 'y']
    """
    end = words.index("--") if "--" in words else len(words)
    ours, theirs = [], []
    rest = iter(words[:end])
    for word in rest:
        if word in _GLOBAL_OPTIONS and (value := next(rest, None)) is not None:
            ours += [word, value]
        elif word in _GLOBAL_SWITCHES or word.startswith(tuple(f"{option}=" for option in _GLOBAL_OPTIONS)):
            ours.append(word)
        else:
            theirs.append(word)
    return [*ours, *theirs, *words[end:]]


def _print_error(error: StationmasterError) -> int:
    _print_line(f"error: {error}" if error.exit_code else str(error))
    if error.hint:
        _print_line(f"hint: {error.hint}")
    return error.exit_code


def _is_full_disk(error: StationmasterError) -> bool:
    """Whether the store could not write because its disk is full, by the error code of SQLite or PostgreSQL."""
    origin = getattr(error.__cause__, "orig", error.__cause__)
    codes = {getattr(origin, "sqlite_errorname", None), getattr(origin, "sqlstate", None)}
    return not codes.isdisjoint(_FULL_DISK)


def _print_full_disk() -> int:
    from stationmaster.errors import DiskFull

    return _print_error(DiskFull("the store's disk is full; nothing was changed", hint=_DISK_HINT))


def _print_line(line: str) -> None:
    from stationmaster.cli.speaking import write_problem

    write_problem(line)


def _print_usage_error(error: Exception) -> int | None:
    """Print an error of Typer about the command line and return its exit code; None if it is another error.

    Newer versions of Typer bundle Click, so the error is recognized by its methods, not by its class.
    """
    import typer

    if isinstance(error, typer.Abort):
        if isinstance(error.__context__, KeyboardInterrupt):
            return 130
        _print_line("error: aborted; nothing was changed")
        return 1
    if not hasattr(error, "format_message"):
        return None
    if type(error).__name__ == "NoArgsIsHelpError":  # the help instead of an error
        error.show()  # type: ignore[attr-defined]
    else:
        context, option = getattr(error, "ctx", None), getattr(error, "option_name", None)
        if type(error).__name__ == "NoSuchOption" and option and context is not None:
            _print_line(f"error: no such option {option}")
            _print_line(f"hint: {_meant_option(option, context) or f'run {context.command_path} -h'}")
            return int(getattr(error, "exit_code", 2))
        message = " ".join(str(error.format_message()).split())
        _print_line(f"error: {message[:1].lower()}{message[1:].removesuffix('.')}")
        if context is not None:
            _print_line(f"hint: run {context.command_path} -h")
    return int(getattr(error, "exit_code", 2))


def _meant_option(wrong: str, context: Any) -> str | None:
    """A hint with the nearest options of the command, those of a recipe and those of every command included."""
    from stationmaster.near_names import did_you_mean

    parameters = [*context.command.get_params(context), *context.find_root().command.params]
    known = [name for one in parameters for name in (*one.opts, *one.secondary_opts) if name.startswith("--")]
    near = did_you_mean(wrong, known, most=2)
    return f"{near} `{context.command_path} -h` lists all" if near else None


def _print_unexpected(error: Exception) -> int:
    import errno  # only needed for errors
    import tempfile
    import traceback

    from stationmaster.errors import DiskFull

    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return _print_error(DiskFull(f"{place}{error.strerror}", hint=_DISK_HINT))
        _print_line(f"error: {place}{error.strerror}")
        return 1
    with tempfile.NamedTemporaryFile("w", prefix="stationmaster-crash-", suffix=".txt", delete=False) as file:
        traceback.print_exception(error, file=file)
    _print_line(f"error: unexpected {type(error).__name__}: {error}")
    _print_line(f"hint: please report this bug with the file {file.name}")
    return 70
