"""`stationmaster __complete SHELL …`: what the completion scripts call at each TAB.

The first line is what the shell shall do: `words`, `partial` (words that go on: no space follows), `files` or
`folders`. A word follows on each further line; for zsh and fish with a tab and its description. Whatever goes wrong,
the answer is empty: a person who presses TAB has asked for no command.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from stationmaster.cli.completion.line import Asked, Candidate, asked
from stationmaster.cli.completion.names import Names
from stationmaster.cli.completion.quoting import Typed, quoted_for_bash, typed_words, unquoted
from stationmaster.cli.completion.table import FILE_PATH, FOLDER_PATH, JOB_OR_FILE, RECIPE_PARAMETER, read_table
from stationmaster.printable import one_line

_MOST = 200  # candidates: no one reads more, and shells ask before they show them


def answer(words: Sequence[str], environ: Mapping[str, str]) -> int:
    """Print the answer for a shell; always exit code 0, and nothing on standard error."""
    try:
        lines = list(answer_lines(words, environ))
    except Exception:  # noqa: BLE001 (whatever it is, it must not appear in the line that is being typed)
        lines = []
    sys.stdout.buffer.write("".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
    sys.stdout.flush()
    return 0


def answer_lines(words: Sequence[str], environ: Mapping[str, str]) -> Iterator[str]:
    shell, *rest = words
    typed = _typed(shell, rest)
    names = Names(environ)
    question = asked(read_table(), typed.words, typed.begun, names.recipe_flags)
    found = _fitting(question, names)
    kind = question.value.kind if question.value is not None else ""
    if not found and kind in (FILE_PATH, JOB_OR_FILE):
        yield "files"
    elif not found and kind == FOLDER_PATH:
        yield "folders"
    else:
        yield "partial" if kind == RECIPE_PARAMETER and not question.attached and _go_on(found) else "words"
    yield from _SHELLS[shell](found, question, typed)


def _typed(shell: str, rest: Sequence[str]) -> Typed:
    if shell == "bash":
        line, breaks = rest
        typed = typed_words(line, breaks="".join(letter for letter in breaks if letter not in "'\""))
        return replace(typed, words=typed.words[1:])  # without the program's name
    *before, begun = rest
    return Typed(words=tuple(before), begun=unquoted(begun))


def _fitting(question: Asked, names: Names) -> list[Candidate]:
    """The candidates that the word can become and that a shell can show and hand back unchanged."""
    others = [] if question.value is None else names.of(question)
    found = [
        replace(each, help=one_line(each.help).replace("\t", " "))
        for each in (*question.candidates, *others)
        if each.value.startswith(question.begun) and each.value and one_line(each.value) == each.value
    ]
    return list({each.value: each for each in found}.values())[:_MOST]


def _go_on(found: Sequence[Candidate]) -> bool:
    return all(each.value.endswith("=") for each in found)


def _bash(found: Sequence[Candidate], question: Asked, typed: Typed) -> Iterator[str]:
    for each in found:
        whole = f"{question.attached}{each.value}"
        if whole.startswith(typed.kept):
            quoted = quoted_for_bash(whole.removeprefix(typed.kept), typed.quote)
            if quoted is not None:
                yield quoted


def _zsh(found: Sequence[Candidate], _question: Asked, _typed: Typed) -> Iterator[str]:
    width = max((len(each.value) for each in found), default=0)
    for each in found:
        yield f"{each.value}\t{each.value:<{width}}  -- {each.help}" if each.help else f"{each.value}\t{each.value}"


def _fish(found: Sequence[Candidate], question: Asked, _typed: Typed) -> Iterator[str]:
    for each in found:
        yield f"{question.attached}{each.value}\t{each.help}"


_SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish}


def main() -> int:
    return answer(sys.argv[2:], os.environ)
