"""An empty path is refused: it would mean the current folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import stationmaster.cli
from stationmaster.cli.context import given_path
from stationmaster.errors import UserError
from tests.support.commands.command_line import output_of

_PATH_PARAMETER = re.compile(r"Annotated\[\s*Path(?: \| None)?,\s*typer\.(?:Option|Argument)\([^]]*\]")


def test_a_path_is_taken_as_it_is_and_an_empty_one_is_not() -> None:
    assert given_path("a/b") == Path("a/b")
    assert given_path(Path()) == Path()  # a default
    with pytest.raises(UserError, match="the path is empty") as refused:
        given_path("")
    assert refused.value.hint == "pass a path; the current folder is ."


def test_every_path_of_every_command_is_checked() -> None:
    sources = {path.name: path.read_text() for path in Path(stationmaster.cli.__file__).parent.glob("*.py")}
    unchecked = [
        f"{name}: {found[0]}"
        for name, source in sources.items()
        for found in _PATH_PARAMETER.finditer(source)
        if "parser=given_path" not in found[0]
    ]
    assert unchecked == []
    assert sum(len(_PATH_PARAMETER.findall(source)) for source in sources.values()) > 10


@pytest.mark.parametrize(
    "words",
    [
        ("parse", ""),
        ("replay", ""),
        ("dataset", "pack", "SET", ""),
        ("dataset", "check", "SET", "--fix", ""),
        ("pull", "abc", ""),
        ("models", "download", "abc", ""),
        ("recipes", "lint", ""),
        ("recipes", "new", ""),
        ("train", ""),
        ("--home", "", "jobs"),
    ],
    ids=" ".join,
)
def test_a_command_says_that_its_path_is_empty(words: tuple[str, ...], tmp_path: Path) -> None:
    printed = output_of(*(str(tmp_path) if word == "SET" else word for word in words), home=tmp_path / "home")
    assert printed == "error: the path is empty\nhint: pass a path; the current folder is .\n"


@pytest.mark.parametrize(
    "words", [("dataset", "check", ""), ("dataset", "pack", "", "set.tar"), ("dataset", "check", " ")]
)
def test_an_empty_dataset_is_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    printed = output_of(*words, home=tmp_path / "home")
    assert printed.startswith("error: the dataset's path is empty\nhint: pass a folder, ")
    assert printed.count("\n") == 2


def test_a_training_needs_a_dataset(tmp_path: Path) -> None:
    words = ("train", "--recipe", "tiny-lora@1", "--dataset", "", "--dry-run")
    printed = output_of(*words, home=tmp_path / "home")
    assert printed == "error: no dataset given\nhint: pass --dataset FOLDER\n"
