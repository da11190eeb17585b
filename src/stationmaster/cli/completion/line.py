"""What a command line asks for at its end: pure, from the words so far and the table of commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from stationmaster.cli.completion.table import RECIPE, TEXT, Flag, Value, Word

_HELP = Flag(names=("--help", "-h"), help="Show the command's help.")
_ALIAS_LETTERS = 3  # of `--driver`; a shorter beginning offers only `--provider`


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    value: str
    help: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What may follow. `begun` is the part of the word that a candidate replaces, `attached` what precedes it."""

    begun: str
    attached: str = ""
    candidates: tuple[Candidate, ...] = ()
    #: What the value here can be; its names are not in the table.
    value: Value | None = None
    #: Values of options so far, by the option's first name, and arguments by their kind.
    given: Mapping[str, str] = field(default_factory=dict)
    #: Whether a value of this kind was given before, as `compare` has several jobs.
    already: tuple[str, ...] = ()


#: The options that a recipe's parameters are, from what the line gives so far.
RecipeFlags = Callable[[Mapping[str, str]], Sequence[Flag]]


def asked(root: Word, words: Sequence[str], begun: str, recipe_flags: RecipeFlags) -> Asked:
    """What the last word can become; `words` are those before it, without the program's name."""
    line = _Line(root, recipe_flags)
    for word in words:
        line.take(word)
    return line.asked(begun)


class _Line:
    def __init__(self, root: Word, recipe_flags: RecipeFlags) -> None:
        self._root = root
        self._word = root
        self._recipe_flags = recipe_flags
        self._open: Flag | None = None  # an option whose value comes next
        self._options_ended = False
        self._arguments: list[str] = []
        self._used: set[str] = set()
        self._given: dict[str, str] = {}

    def take(self, word: str) -> None:
        if self._open is not None:
            self._give(self._open, word)
            self._open = None
        elif word == "--" and not self._options_ended:
            self._options_ended = True
        elif word.startswith("-") and len(word) > 1 and not self._options_ended:
            self._take_option(word)
        elif not self._arguments and word in self._word.commands:
            self._word = self._word.commands[word]
        else:
            place = self._place()
            if place is not None and place.kind != TEXT:
                self._given.setdefault(f"<{place.kind}>", word)
            self._arguments.append(word)

    def asked(self, begun: str) -> Asked:
        if self._open is not None:
            return self._value(self._open.value, begun)
        if begun.startswith("-") and not self._options_ended:
            name, equals, value = begun.partition("=")
            if not equals:
                return Asked(begun=begun, candidates=tuple(self._options(begun)), given=self._given)
            flag = self._flag(name)
            return self._value(None if flag is None else flag.value, value, attached=f"{name}=")
        place = self._place()
        commands = () if self._arguments else tuple(_commands(self._word))
        found = self._value(place, begun)
        return Asked(
            begun=begun,
            candidates=(*commands, *found.candidates),
            value=found.value,
            given=self._given,
            already=tuple(self._arguments),
        )

    def _take_option(self, word: str) -> None:
        name, equals, value = word.partition("=")
        flag = self._flag(name)
        if flag is None:
            return
        self._used.add(flag.names[0])
        if flag.value is not None and equals:
            self._give(flag, value)
        elif flag.value is not None:
            self._open = flag

    def _give(self, flag: Flag, value: str) -> None:
        self._given[flag.names[0]] = value
        if flag.value is not None and flag.value.kind == RECIPE:
            self._given[f"<{RECIPE}>"] = value

    def _place(self) -> Value | None:
        """What the next argument is."""
        places, index = self._word.arguments, len(self._arguments)
        if index < len(places):
            return places[index]
        return places[-1] if places and self._word.has_many else None

    def _value(self, value: Value | None, begun: str, attached: str = "") -> Asked:
        choices = () if value is None else tuple(Candidate(value=each) for each in value.choices)
        return Asked(begun=begun, attached=attached, candidates=choices, value=value, given=self._given)

    def _flags(self) -> Iterator[Flag]:
        yield from self._word.flags
        if self._word.takes_recipe:
            taken = {name for flag in self._word.flags for name in flag.names}
            yield from (flag for flag in self._recipe_flags(self._given) if taken.isdisjoint(flag.names))
        if self._word is not self._root:
            own = {name for flag in self._word.flags for name in flag.names}
            yield from (
                flag for flag in self._root.flags if own.isdisjoint(flag.names) and flag.names[0] != "--version"
            )
        yield _HELP

    def _flag(self, name: str) -> Flag | None:
        return next((flag for flag in self._flags() if name in flag.names), None)

    def _options(self, begun: str) -> Iterator[Candidate]:
        for flag in self._flags():
            if flag.names[0] in self._used and not flag.repeatable:
                continue
            first, *others = (name for name in flag.names if name.startswith("--"))
            yield Candidate(value=first, help=flag.help)
            for name in others:
                is_opposite = name.startswith("--no-")
                if is_opposite or len(begun) >= _ALIAS_LETTERS:
                    yield Candidate(value=name, help=flag.help)


def _commands(word: Word) -> Iterator[Candidate]:
    for name, inner in word.commands.items():
        yield Candidate(value=name, help=inner.summary)
