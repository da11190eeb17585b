"""`doctor` as people run it: aligned, coloured at a terminal, quiet on request, 1 only for a failure."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands.cli_runs import Home
from tests.support.commands.command_line import PATIENCE_SECONDS, command_server
from tests.support.commands.terminal import at_terminal


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with Home(tmp_path) as opened:
        yield opened


def test_each_check_is_a_line_and_the_last_line_counts_them(home: Home) -> None:
    ran = home.run("doctor", "--offline")
    *lines, last = ran.out.splitlines()
    checks = [line for line in lines if not line.lstrip().startswith("hint:")]
    levels = [line.split()[0] for line in checks]
    counts = [levels.count(level) for level in ("ok", "warn", "fail")]
    ends = ["" if count == 1 else "s" for count in counts]
    assert last == f"{counts[0]} ok, {counts[1]} warning{ends[1]}, {counts[2]} failure{ends[2]}"
    assert len({len("".join(re.split(r"(  +)", line)[:4])) for line in checks}) == 1
    assert "\x1b" not in ran.out


def test_a_warning_is_no_failure_and_quiet_prints_only_what_is_not_ok(home: Home) -> None:
    path = str(Path(sys.executable).parent)  # without ssh and rsync
    ran = home.run("--quiet", "doctor", "--offline", PATH=path)
    assert ran.code == 0
    assert re.search(r"^warn +rsync +not found: large transfers use SFTP\n +hint: install rsync$", ran.out, re.M)
    assert not re.search(r"^ok|\d ok, ", ran.out, re.M)
    results = {one["check"]: one for one in home.run("doctor", "--offline", "--json", PATH=path).json()}
    assert (results["rsync"]["ok"], results["rsync"]["level"]) == (True, "warn")
    failing = home.run("-q", "doctor", "--offline", STATIONMASTER_TRANSFER__WAY="rsync", PATH=path)
    assert (failing.code, "fail" in failing.out) == (1, True)


def test_levels_have_colours_at_a_terminal(home: Home) -> None:
    environ = {**home.environ, "TERM": "xterm-256color", "STATIONMASTER_PROVIDER": "vastai"}
    words = [command_server().own_command, "doctor", "--offline"]
    shown = at_terminal(words, environ=environ, cwd=home.folder, answers={}, seconds=PATIENCE_SECONDS)
    assert shown.code == 1
    assert "\x1b[32mok\x1b[0m " in shown.shown
    assert re.search(r"\x1b\[31mfail\x1b\[0m +provider", shown.shown)
    assert "\x1b[36mhint:\x1b[0m set VASTAI_API_KEY" in shown.shown
