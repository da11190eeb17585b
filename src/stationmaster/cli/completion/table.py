"""The commands and their options as completion knows them, read from `words.json`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("words.json")

#: What the value of a parameter can be, besides one of its choices.
TEXT = "text"  # only the person knows it
FILE_PATH, FOLDER_PATH = "file", "folder"
JOB, RUNNING_JOB, ENDED_JOB, JOB_OR_FILE = "job", "running job", "ended job", "job or file"
RECIPE, RECIPE_PARAMETER, MODEL, USER = "recipe", "recipe parameter", "model", "user"
PROVIDER, ACCOUNT = "provider", "account"
KINDS = frozenset(
    {TEXT, FILE_PATH, FOLDER_PATH, JOB, RUNNING_JOB, ENDED_JOB, JOB_OR_FILE, RECIPE, RECIPE_PARAMETER, MODEL, USER}
    | {PROVIDER, ACCOUNT}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What can be written where a value is expected."""

    kind: str = TEXT
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """An option with all of its names; without `value` it is a switch."""

    names: tuple[str, ...]
    help: str
    value: Value | None = None
    repeatable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A command or a group of commands."""

    summary: str = ""
    flags: tuple[Flag, ...] = ()
    #: Of the arguments in their order; the last one is taken any number of times if `has_many`.
    arguments: tuple[Value, ...] = ()
    has_many: bool = False
    #: Whether the parameters of a recipe are options, too.
    takes_recipe: bool = False
    commands: dict[str, Word] = field(default_factory=dict)


def read_table() -> Word:
    return _word(json.loads(FILE.read_text(encoding="utf-8")))


def _word(data: dict[str, Any]) -> Word:
    return Word(
        summary=data.get("summary", ""),
        flags=tuple(_flag(each) for each in data.get("flags", ())),
        arguments=tuple(_value(each) for each in data.get("arguments", ())),
        has_many=data.get("has_many", False),
        takes_recipe=data.get("takes_recipe", False),
        commands={name: _word(each) for name, each in data.get("commands", {}).items()},
    )


def _flag(data: dict[str, Any]) -> Flag:
    value = data.get("value")
    return Flag(
        names=tuple(data["names"]),
        help=data["help"],
        value=None if value is None else _value(value),
        repeatable=data.get("repeatable", False),
    )


def _value(data: dict[str, Any]) -> Value:
    return Value(kind=data.get("kind", TEXT), choices=tuple(data.get("choices", ())))
