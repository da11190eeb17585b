"""Questions to the person at the terminal, each of one line. Tests answer from a script instead."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

import typer

from stationmaster.cli.speaking import is_quiet
from stationmaster.cli.table import Column, Row, print_table
from stationmaster.errors import Forbidden, NotSignedIn, UserError
from stationmaster.printable import one_line

Answer = TypeVar("Answer")
Completions = Callable[[str], Iterable[str]]
"""What the beginning of an answer may become."""

_MOST_TRIES = 5


class Person(Protocol):
    def answer(self, question: str, *, completions: Completions | None = None) -> str:
        """What the person types, without the spaces around it. Raises typer.Abort or Exit if they leave."""

    def tell(self, line: str) -> None: ...

    def show_table(self, columns: Sequence[Column], rows: Iterable[Row]) -> None: ...


def can_converse(*, as_json: bool, yes: bool) -> bool:
    """Whether a person who wants to be asked sits at the terminal."""
    return not (as_json or yes or is_quiet()) and sys.stdin.isatty() and sys.stdout.isatty()


def ask_until_valid(
    person: Person,
    question: str,
    read: Callable[[str], Answer],
    *,
    option: str,
    completions: Completions | None = None,
) -> Answer:
    """Ask until `read` accepts the answer; it raises UserError with what is wrong.

    After a few answers that are not valid, raises UserError that names the option to pass instead.
    """
    for _ in range(_MOST_TRIES):
        try:
            return read(person.answer(question, completions=completions))
        except (NotSignedIn, Forbidden):  # no answer would help
            raise
        except UserError as problem:
            person.tell(f"  {problem}" + (f" ({problem.hint})" if problem.hint else ""))
    raise UserError(f"no valid answer after {_MOST_TRIES} tries; nothing was changed", hint=f"pass {option}")


def ask_yes_or_no(person: Person, question: str, *, default: bool, option: str) -> bool:
    def read(answer: str) -> bool:
        given = yes_or_no(answer, default=default)
        if given is None:
            raise UserError("answer y or n")
        return given

    return ask_until_valid(person, f"{question} [{'Y/n' if default else 'y/N'}] ", read, option=option)


def yes_or_no(answer: str, *, default: bool) -> bool | None:
    """
    >>> yes_or_no("", default=True), yes_or_no("No", default=True), yes_or_no("2", default=True)
    (True, False, None)
    """
    return {"": default, "y": True, "yes": True, "n": False, "no": False}.get(answer.lower())


class TerminalPerson:
    """The person at the terminal. Questions go to standard error where standard output is not the terminal."""

    def answer(self, question: str, *, completions: Completions | None = None) -> str:
        try:
            with _completing(completions):
                if sys.stdout.isatty():
                    sys.stdout.flush()
                    return input(one_line(question)).strip()
                print(one_line(question), end=" ", file=sys.stderr, flush=True)
                return input().strip()
        except EOFError:
            print(file=sys.stderr)
            raise typer.Abort from None
        except KeyboardInterrupt:
            print("\naborted; nothing was changed", file=sys.stderr)
            raise typer.Exit(130) from None

    def tell(self, line: str) -> None:
        typer.echo(one_line(line))

    def show_table(self, columns: Sequence[Column], rows: Iterable[Row]) -> None:
        print_table(columns, rows)


@contextlib.contextmanager
def _completing(completions: Completions | None) -> Iterator[None]:
    """Line editing, and Tab completes the answer; neither where Python was built without readline."""
    try:
        import readline  # changes how `input` reads: only where there are questions
    except ImportError:
        yield
        return

    def complete(text: str, state: int) -> str | None:
        found = [] if completions is None else list(completions(text))
        return found[state] if state < len(found) else None

    before, delimiters = readline.get_completer(), readline.get_completer_delims()
    readline.set_completer(complete)
    readline.set_completer_delims("")
    is_libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
    try:
        yield
    finally:
        readline.set_completer(before)
        readline.set_completer_delims(delimiters)
