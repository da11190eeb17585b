"""The terminal is left as it was found, however the app ends, and it suits every size and kind of terminal."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.support.terminal.tmux import RESTORED, Tmux

_MOCK = (str(Path(sys.executable).with_name("stationmaster")), "monitor", "--mock", "--interval", "1")


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("person")
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "STATIONMASTER_HOME": str(folder / "home"),
        "TMPDIR": str(folder),
    }


@pytest.fixture(scope="module")
def terminal(person: dict[str, str]) -> Iterator[Tmux]:
    """One terminal for all: what one program leaves behind, the next one would meet."""
    with Tmux(environ=person, cwd=Path(person["HOME"]), columns=120, rows=40) as opened:
        yield opened


@pytest.mark.parametrize("how", ["q", "C-c"])
def test_leaving_by_a_key_restores_the_terminal(terminal: Tmux, how: str) -> None:
    terminal.start(*_MOCK)
    terminal.until_shown("MOCK", "30007012", "Quit")
    assert terminal.modes().alternate_screen
    terminal.press(how)
    assert terminal.exit_code() == 0
    assert terminal.modes() == RESTORED


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGHUP])
def test_being_ended_by_a_signal_restores_the_terminal(terminal: Tmux, sent: signal.Signals) -> None:
    terminal.start(*_MOCK)
    terminal.until_shown("MOCK", "30007012", "Quit")
    (app,) = terminal.running()
    os.kill(app, sent)
    assert terminal.exit_code() == 128 + sent
    assert terminal.modes() == RESTORED


def test_a_crash_restores_the_terminal_and_is_told_in_a_line(terminal: Tmux) -> None:
    """Nothing inside raises on request, so the last resort is tried by breaking a part of the app."""
    broken = (
        "from stationmaster.cli.main import main\n"
        "from stationmaster.tui.widgets.fleet_table import FleetTable\n"
        "def burst(self, y): raise ZeroDivisionError('burst')\n"
        "FleetTable.render_line = burst\n"
        "main()\n"
    )
    terminal.start(sys.executable, "-c", broken, *_MOCK[1:])
    assert terminal.exit_code() not in (0, 130)
    assert terminal.modes() == RESTORED
    assert "burst" in terminal.screen()
    assert "Traceback" not in terminal.screen()


def test_every_size_from_small_to_huge_and_back_is_filled(terminal: Tmux) -> None:
    terminal.start(*_MOCK)
    terminal.until_shown("30007012", "Quit")
    try:
        for columns, rows in ((80, 24), (300, 100), (80, 24), (120, 40)):
            terminal.resize(columns, rows)
            terminal.until_screen(partial(fills, rows=rows), f"a full screen of {columns}×{rows}")
    finally:
        terminal.resize(120, 40)
        terminal.press("q")
    assert terminal.exit_code() == 0


def test_without_colours_nothing_is_coloured_and_every_state_has_a_mark(terminal: Tmux) -> None:
    terminal.start(*_MOCK, NO_COLOR="1")
    terminal.until_shown("30007012", "Quit")
    coloured = terminal.coloured_screen()
    terminal.press("q")
    assert terminal.exit_code() == 0
    assert coloured_codes(coloured) == set()
    assert all(mark in coloured for mark in "●▲✖·")


def test_the_mouse_moves_the_cursor_and_opens_a_row(terminal: Tmux) -> None:
    terminal.start(*_MOCK)
    terminal.until_shown("30007109", "Quit")
    terminal.click("30007109")  # the cursor goes there
    terminal.click("30007109")  # which opens it
    terminal.until_shown("loss", "memory", "Back", "30007109")
    terminal.press("Escape")
    terminal.until_shown("30007012", "Filter")
    terminal.press("q")
    assert terminal.exit_code() == 0


def test_a_dumb_terminal_gets_plain_tables(terminal: Tmux) -> None:
    terminal.start(*_MOCK, TERM="dumb")
    terminal.until_shown("30007012", "running")
    assert not terminal.modes().alternate_screen
    terminal.press("C-c")
    assert terminal.exit_code() == 130
    assert terminal.modes() == RESTORED


def fills(screen: Sequence[str], *, rows: int) -> bool:
    """Whether the footer is on the last line and nothing of another size is left above it."""
    machines = [line for line in screen if line.lstrip(" ●▲✖·").startswith("30007012")]
    return (
        len(screen) == rows
        and "Quit" in screen[-1]
        and not any("Quit" in line for line in screen[:-1])
        and len(machines) == 1
    )


def coloured_codes(screen: str) -> set[str]:
    """The colours among the styles of a screen; bold, dim and reversed are none."""
    found = set()
    for part in screen.split("\x1b[")[1:]:
        codes = part.partition("m")[0].split(";")
        found |= {code for code in codes if code.isdigit() and (30 <= int(code) <= 38 or 40 <= int(code) <= 48)}
        found |= {code for code in codes if code.isdigit() and 90 <= int(code) <= 107}
    return found
