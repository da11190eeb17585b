"""`stationmaster --json COMMAND` is `stationmaster COMMAND --json`, for every command that has it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stationmaster.cli.commands import loaded_tree
from stationmaster.cli.context import Options
from tests.support.commands.command_line import output_of
from tests.support.watching.training_logs import LOGS

_LOG = str(LOGS / "plain" / "tutorial.log")


def _commands_with_json(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any, Any]]:
    for name, command in getattr(group, "commands", {}).items():
        for parameter in command.params:
            if "--json" in parameter.opts:
                yield " ".join((*path, name)), command, parameter
        yield from _commands_with_json(command, (*path, name))


_WITH_JSON = list(_commands_with_json(loaded_tree()))


def _read(command: Any, parameter: Any, *, words: dict[str, Any], is_global: bool) -> object:
    """What the command's function gets for `--json`, given these options of its own."""
    root = loaded_tree().make_context("stationmaster", ["doctor"])
    root.obj = Options(as_json=is_global, home=None, log_level=None, server=None, environ={}, own_command=())
    context = command.make_context(command.name, [], parent=root, resilient_parsing=True)
    context.resilient_parsing = False
    return parameter.handle_parse_result(context, words, [])[0]


@pytest.mark.parametrize(("name", "command", "parameter"), _WITH_JSON, ids=[name for name, *_ in _WITH_JSON])
def test_the_global_option_is_the_command_s_own(name: str, command: Any, parameter: Any) -> None:
    assert _read(command, parameter, words={}, is_global=True) is True
    assert _read(command, parameter, words={parameter.name: True}, is_global=False) is True
    assert _read(command, parameter, words={}, is_global=False) is False


def test_there_are_many_such_commands() -> None:
    assert {"dataset check", "dataset pack", "parse", "replay", "jobs", "train"} <= {name for name, *_ in _WITH_JSON}


def _words(name: str, folder: Path) -> list[str]:
    dataset = folder / "set"
    dataset.mkdir()
    (dataset / "rows.jsonl").write_text('{"text": "a row"}\n')
    timed = folder / "timed.log"
    timed.write_text("1700000000.0 step 1/9 loss 0.5\n1700009000.0 step 1/9 loss 0.5\n")
    return {
        "parse": ["parse", _LOG],
        "replay": ["replay", str(timed)],
        "dataset check": ["dataset", "check", str(dataset), "--kind", "text"],
        "dataset pack": ["dataset", "pack", str(dataset), str(folder / "set.tar")],
    }[name]


@pytest.mark.parametrize("name", ["parse", "replay", "dataset check", "dataset pack"])
def test_a_command_prints_json_for_the_global_option(name: str, tmp_path: Path) -> None:
    words = _words(name, tmp_path)
    home = tmp_path / "home"
    globally, own = output_of("--json", *words, home=home), output_of(*words, "--json", home=home)
    assert globally == own
    assert isinstance(json.JSONDecoder().raw_decode(globally)[0], dict)
