"""Every command says what it does and shows two examples; the installed command answers without a home."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from stationmaster.cli.commands import loaded_tree
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


def test_the_installed_command_tells_what_it_can_and_touches_nothing(home: Home) -> None:
    ran = home.run_installed("--help")
    assert ran.code == 0
    for word in ("train", "jobs", "stop", "cancel", "retry", "doctor", "Start with: stationmaster demo"):
        assert word in ran.out
    assert home.run_installed("--version").out.startswith("stationmaster ")
    assert not home.path.exists()
