"""Every command says what it does and shows two examples; the installed command answers without a home."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from stationmaster.cli.commands import GROUPS as GROUPS_OF_HELP
from stationmaster.cli.commands import loaded_tree
from stationmaster.cli.help_pages import VALUE_WORDS
from stationmaster.recipes.registry import find
from tests.support.commands.cli_runs import Home


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        yield " ".join((*path, name)), command


COMMANDS = dict(commands(loaded_tree()))
GROUPS = {name for name, command in COMMANDS.items() if hasattr(command, "commands") and name != "jobs"}


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - GROUPS))
def test_a_command_has_one_sentence_and_two_examples(name: str) -> None:
    told = str(COMMANDS[name].help)
    assert told.splitlines()[0].strip()
    _, _, examples = told.partition("Examples:")
    lines = [line.strip() for line in examples.splitlines() if line.strip()]
    assert len(lines) >= 2
    assert f"stationmaster {name}" in examples


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_option_says_what_it_does(name: str) -> None:
    for option in COMMANDS[name].params:
        if option.param_type_name == "option":
            assert option.help, option.name


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_value_has_a_word(name: str) -> None:
    """Not `TEXT` or a type of Python: `--steps N`, `--max-price DOLLARS`."""
    for option in COMMANDS[name].params:
        if option.param_type_name == "option" and not option.is_flag:
            assert option.metavar or any(flag in VALUE_WORDS for flag in option.opts), option.opts


def test_no_word_is_left_of_an_option_that_is_gone() -> None:
    flags = {flag for command in (loaded_tree(), *COMMANDS.values()) for one in command.params for flag in one.opts}
    assert VALUE_WORDS.keys() <= flags


def examples() -> Iterator[tuple[str, str]]:
    for name in sorted(COMMANDS.keys() - GROUPS):
        for line in str(COMMANDS[name].help).partition("Examples:")[2].splitlines():
            if "stationmaster" in line:
                yield name, line.strip()


@pytest.mark.parametrize(("name", "line"), list(examples()))
def test_an_example_can_be_typed_as_it_is_shown(name: str, line: str) -> None:
    typed = re.split(r"\s[|>&]", line[line.index("stationmaster") :])[0].removesuffix(")" if "$(" in line else "")
    _, *words = shlex.split(typed)
    assert " ".join(words).startswith(name)
    known = (*loaded_tree().params, *COMMANDS[name].params)
    flags = {flag for one in known for flag in (*one.opts, *one.secondary_opts)}
    recipes = [find(word, folders=()).recipe for word in words if "lora@" in word]
    flags |= {f"--{parameter.replace('_', '-')}" for recipe in recipes for parameter in recipe.parameters}
    assert {word.partition("=")[0] for word in words if re.match("--?[a-z]", word)} <= flags | {"-h", "--help"}


def test_the_help_groups_its_commands(home: Home) -> None:
    shown = home.run_installed("--help").out
    titles = [line.removesuffix(":") for line in shown.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert titles == [*GROUPS_OF_HELP, "Options"]
    assert titles[:-1] == ["Train", "Watch", "Machines", "Data and recipes", "Money and people", "Run it"]


def test_the_installed_command_tells_what_it_can_and_touches_nothing(home: Home) -> None:
    ran = home.run_installed("--help")
    assert ran.code == 0
    for word in ("train", "jobs", "stop", "cancel", "retry", "doctor", "Start with: stationmaster demo"):
        assert word in ran.out
    assert home.run_installed("--version").out.startswith("stationmaster ")
    assert not home.path.exists()
