"""Each example has a page of the same form, is listed, and is run by a test; its command lines are valid."""

from __future__ import annotations

import re
import shlex
import stat
from pathlib import Path

import pytest

from stationmaster.cli.commands import loaded_tree
from tests.support.commands.example_runs import EXAMPLES
from tests.support.docs_pages import dead_links
from tests.support.programs import ROOT

FOLDERS = sorted(path for path in EXAMPLES.iterdir() if path.is_dir())
PAGES = [EXAMPLES / "README.md", *(folder / "README.md" for folder in FOLDERS)]
SCRIPTS = sorted(EXAMPLES.rglob("*.sh"))
_BLOCK = re.compile(r"^ *```(?:sh|console)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"(?:^|[|&;({`\s])stationmaster (?=[a-z-])")


def test_there_are_a_dozen_and_more() -> None:
    assert len(FOLDERS) >= 12


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_an_example_has_a_short_page_and_is_listed_and_run(folder: Path) -> None:
    page = (folder / "README.md").read_text(encoding="utf-8")
    assert len(page.splitlines()) <= 60
    assert f"({folder.name}/README.md)" in (EXAMPLES / "README.md").read_text(encoding="utf-8")
    tests = [*(ROOT / "tests" / "examples").glob("test_*.py"), ROOT / "tests" / "acceptance" / "test_telegram_bot.py"]
    runs = [path.name for path in tests if f'EXAMPLES / "{folder.name}"' in path.read_text(encoding="utf-8")]
    assert runs, "write a test that runs its files, as EXAMPLES / its name"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: f"{script.parent.name}/{script.name}")
def test_a_script_stops_at_errors_and_can_be_started(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert text.startswith("#!/usr/bin/env bash\n# ")
    assert "\nset -euo pipefail\n" in text
    assert script.stat().st_mode & stat.S_IXUSR


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_every_link_of_a_page_leads_to_something(page: Path) -> None:
    assert dead_links(page) == []


def _command_lines(path: Path) -> list[str]:
    """Every `stationmaster …` that a page or a script has, as far as the shell's next sign."""
    text = path.read_text(encoding="utf-8")
    blocks = _BLOCK.findall(text) if path.suffix == ".md" else [re.sub(r"(?m)^\s*#.*$", "", text)]
    lines = []
    for block in blocks:
        for line in block.replace("\\\n", " ").splitlines():
            lines += [line[found.end() :] for found in _COMMAND.finditer(line)]
    return lines


FILES = [*PAGES, *SCRIPTS]
LINES = [
    pytest.param(line, id=f"{path.parent.name}/{path.name}: {line[:60]}")
    for path in FILES
    for line in _command_lines(path)
]


@pytest.mark.parametrize("line", LINES)
def test_a_command_line_names_a_command_and_its_options(line: str) -> None:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()`")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    words = []
    for word in lexer:
        if word[0] in "|&;<>()`":
            break
        words.append(word)
    command, path = loaded_tree(), []
    options = {name for parameter in command.params for name in parameter.opts}
    while hasattr(command, "commands") and words and words[0] in command.commands:
        path.append(words.pop(0))
        command = command.commands[path[-1]]
        options |= {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    assert path, f"there is no command {line!r}"
    given = {word.partition("=")[0] for word in words if word.startswith("-") and word not in ("-", "--")}
    recipe_s_own = {"--learning-rate"} if path[0] in ("train", "estimate") else set()
    assert given <= options | recipe_s_own
