"""Long work in a real terminal: one bar that is drawn again in its place, also in 40 columns and without colours."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.support.commands.cli_runs import Home
from tests.support.commands.command_line import command_server
from tests.support.terminal.tmux import RESTORED, Tmux

_COLOUR = re.compile(r"\x1b\[[0-9;]*[1-9][0-9;]*m")
_COPY = """
import os, pathlib, sys, time
from stationmaster.cli.speaking import speak
from stationmaster.cli.terminal_output import guard_terminal
from stationmaster.cli.progress_bars import transfer_bar
guard_terminal()
speak(os.environ, quiet=False)
with transfer_bar("copying cats") as bar:
    time.sleep(float(sys.argv[1]))
    for percent in (20, 40, 60, 80, 100):
        bar(percent * 1_000_000, 100_000_000)
        while len(sys.argv) > 2 and not pathlib.Path(sys.argv[2], str(percent)).exists():
            time.sleep(0.11)  # longer than between two redraws
print("all copied")
"""
"""Copies in five parts, after so many seconds; each part goes on once a file with its number is in the folder."""


def bars(screen: str) -> list[str]:
    return [line for line in screen.splitlines() if "━" in line or "─" in line]


def in_terminal(home: Home, **size: int) -> Tmux:
    return Tmux(environ=home.environ, cwd=home.folder, **size)


def test_a_bar_stays_on_one_line_and_leaves_nothing_behind(home: Home, tmp_path: Path) -> None:
    program = tmp_path / "copying_files.py"
    program.write_text(_COPY)
    with in_terminal(home, columns=40, rows=12) as terminal:
        terminal.start(sys.executable, str(program), "0.5", str(tmp_path), NO_COLOR="1")
        for percent in (20, 40, 60, 80):
            screen = terminal.until_shown(f"copying cats  {percent}%")
            (bar,) = bars(screen)
            assert percent == 20 or "ETA" in bar
            (tmp_path / str(percent)).touch()
        assert not _COLOUR.search(terminal.coloured_screen())
        (tmp_path / "100").touch()
        assert terminal.exit_code() == 0
        assert bars(terminal.screen()) == []
        assert "\nall copied\n" in f"\n{terminal.screen()}"


def test_a_dumb_terminal_gets_lines(home: Home, tmp_path: Path) -> None:
    program = tmp_path / "copying_files.py"
    program.write_text(_COPY)
    with in_terminal(home, columns=80, rows=24) as terminal:
        terminal.start(sys.executable, str(program), "2.5", TERM="dumb")
        assert terminal.exit_code() == 0
        told = [line for line in terminal.screen().splitlines() if line.startswith("copying cats")]
        assert told[-1] == "copying cats: 100 % of 100.0 MB"
        assert len(told) == len(set(told))


def test_a_watched_training_is_one_bar_in_40_columns_and_ctrl_c_leaves_a_clean_terminal(
    home: Home, pictures: Path
) -> None:
    command = command_server().own_command
    train = (command, "train", "--recipe", "tiny-lora@1", "--dataset", str(pictures), "--name", "cats", "--id", "seen")
    steps = ("--steps", "4000", "-p", "seconds_per_step=0.05", "-p", "save_every=4000")
    with in_terminal(home, columns=40, rows=30) as terminal:
        terminal.start(*train, *steps, "--watch", NO_COLOR="1")
        screen = terminal.until_shown("cats  EXECUTING", "/4000 (")
        assert len(bars(screen)) == 1
        later = terminal.until_shown("/4000 (1")
        assert len(bars(later)) == 1
        assert later.count("cats  EXECUTING") == 1
        terminal.press("C-c")
        terminal.until_shown("Stop the training?")
        assert terminal.modes() == RESTORED
        terminal.type("y")
        terminal.press("Enter")
        assert terminal.exit_code() == 0
        assert not _COLOUR.search(terminal.coloured_screen())
        terminal.start(command, "cancel", "seen", "--yes")
        assert terminal.exit_code() == 0
