"""The table of commands says what the commands say of themselves, and only the command that is run is imported."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stationmaster.cli.commands import COMMANDS, Command, command_tree, loaded_tree
from tests.support.commands.command_line import output_of
from tests.support.commands.imports import run


def _commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, command in getattr(group, "commands", {}).items():
        yield from _commands(command, (*path, name))


_MODULES = {f"stationmaster.cli.{line.place.partition(':')[0]}" for line in COMMANDS}


@pytest.mark.parametrize("line", COMMANDS, ids=lambda line: line.name)
def test_a_line_says_the_first_line_of_the_command_s_own_help(line: Command) -> None:
    command = loaded_tree().commands[line.name]
    assert str(command.help).splitlines()[0] == line.summary
    assert command.hidden == line.hidden
    assert command.name == line.name


@pytest.mark.parametrize("path", list(_commands(loaded_tree())), ids=" ".join)
def test_help_fits_into_80_columns_and_is_cut_nowhere(path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    command, context = loaded_tree(), None
    for name in ("stationmaster", *path):
        command = command if context is None else command.commands[name]
        context = command.make_context(name, [], parent=context, resilient_parsing=True)
    usage, _, shown = command.get_help(context).partition("\n\n")
    assert max(map(len, [*usage.splitlines(), *shown.splitlines()])) <= 80
    assert "..." not in shown.replace("JOB...", "").replace("FILE...", "")
    assert "…" not in shown
    for name, inner in getattr(command, "commands", {}).items():
        first_sentence = inner.help.splitlines()[0]
        assert inner.hidden or re.search(rf"^  {name} +{re.escape(first_sentence)}$", shown, re.MULTILINE)


def test_no_two_lines_have_a_name_in_common() -> None:
    assert list(command_tree().commands) == [line.name for line in COMMANDS]


def test_the_list_of_commands_imports_none_of_them() -> None:
    printed, modules = run("--help")
    assert [line.name for line in COMMANDS if not line.hidden and f"\n  {line.name} " not in printed] == []
    assert modules.isdisjoint(_MODULES)
    assert modules.isdisjoint({"pydantic", "rich", "sqlalchemy", "structlog"})


def test_a_command_imports_no_other_command() -> None:
    printed, modules = run("jobs", "--help")
    assert "Usage: stationmaster jobs [COMMAND] [OPTIONS]" in printed
    assert modules & _MODULES == {"stationmaster.cli.jobs"}


@pytest.mark.parametrize("words", [("recipes", "list"), ("recipes", "new", "NEW"), ("dataset", "pack", "SET", "TAR")])
def test_what_needs_no_store_opens_none(words: tuple[str, ...], tmp_path: Path) -> None:
    places = {"NEW": tmp_path / "mine", "SET": tmp_path / "set", "TAR": tmp_path / "set.tar"}
    places["SET"].mkdir()
    (places["SET"] / "rows.jsonl").write_text('{"text": "a row"}\n')
    home = tmp_path / "home"
    printed, modules = run(*(str(places.get(word, word)) for word in words), environ={"STATIONMASTER_HOME": str(home)})
    assert "error" not in printed
    assert "sqlalchemy" not in modules
    assert not home.exists()


def test_commands_of_a_group_have_their_help(tmp_path: Path) -> None:
    assert "Usage: stationmaster jobs rm JOB [OPTIONS]" in output_of("jobs", "rm", "--help", home=tmp_path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("shwo",), "error: no such command 'shwo'\nhint: did you mean `stationmaster show`?"),
        (("keys", "chekc"), "error: no such command 'chekc'\nhint: did you mean `stationmaster keys check`?"),
    ],
)
def test_a_command_that_is_unknown_is_answered_with_the_nearest(
    words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    assert said in output_of(*words, home=tmp_path)
