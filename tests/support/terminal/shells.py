"""Real interactive shells in a terminal, in which a test types a line, presses TAB and looks at what came."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.capabilities import require
from tests.support.terminal.tmux import Tmux
from tests.support.waiting import until

COMMAND = Path(sys.executable).with_name("stationmaster")
SHELLS = ("bash", "zsh", "fish")
#: The line that a person types to try completion, once their shell runs.
SOURCE = {
    "bash": "source <(stationmaster completion bash)",
    "zsh": "autoload -Uz compinit && compinit -D -u && source <(stationmaster completion zsh)",
    "fish": "stationmaster completion fish | source",
}
_START = {"bash": "bash --noprofile --norc -i", "zsh": "zsh -f -i", "fish": "fish --no-config -i"}
_WITH_RC_FILES = {"bash": "bash -i", "zsh": "zsh -i", "fish": "fish -i"}
_SETTINGS = {
    "bash": "PS1='at> '; HISTFILE=; bind 'set completion-query-items 0'; bind 'set page-completions off'",
    "zsh": "PS1='at> '; LISTMAX=999",
    "fish": "function fish_prompt; echo 'at> '; end; set -g fish_autosuggestion_enabled 0",
}


class Shell:
    """A shell whose `stationmaster` completes as the installed one; run, it only prints the arguments that it got."""

    def __init__(self, name: str, terminal: Tmux) -> None:
        self.name = name
        self._terminal = terminal
        self._tabs = 2 if name == "bash" else 1  # until all that fits is listed
        self._lines = 0

    def run(self, line: str) -> None:
        """Type a line and wait for its end."""
        self._lines += 1
        mark = f"end-of-line-{self._lines}"
        self._terminal.type(f" {line}; echo {mark[:4]}''{mark[4:]}")
        self._terminal.press("Enter")
        self._terminal.until_shown(mark)
        self._terminal.type("clear")
        self._terminal.press("Enter")
        self._terminal.until_screen(lambda lines: not any(mark in each for each in lines), "a clear screen")

    def offers(self, line: str, *expected: str) -> str:
        """Type the line and press TAB; wait until all of the texts are shown. Returns the screen."""
        self._terminal.type(line)
        self._terminal.until_shown(line.strip())
        for _ in range(self._tabs):
            self._terminal.press("Tab")
        screen = self._terminal.until_shown(*expected)
        self._terminal.press("C-c")
        self._clear()
        return screen

    def arguments(self, line: str, completed: str) -> list[str]:
        """The arguments that the command gets after TAB has completed the line to this one, and Enter was pressed."""
        self._terminal.type(line)
        self._terminal.until_shown(line.strip())
        self._terminal.press("Tab")
        self._terminal.until_shown(completed)
        self._terminal.press("Enter")
        shown = until(
            lambda: re.search(r"^got((?: <[^>]*>)*) \.$", self._terminal.screen(), re.MULTILINE),
            "the arguments",
            story=self._terminal.screen,
        )
        self._clear()
        return re.findall(r"<([^>]*)>", shown[1])

    def _clear(self) -> None:
        """An empty screen, once the shell waits for the next line."""
        self._terminal.until_screen(
            lambda lines: [each.strip() for each in lines if each][-1:] == ["at>"], "a new line"
        )
        self._terminal.press("C-l")
        self._terminal.until_screen(lambda lines: [each.strip() for each in lines if each] == ["at>"], "a clear screen")


@contextmanager
def opened_shell(
    name: str, folder: Path, environ: Mapping[str, str], *, rc_files: bool = False, setup: str | None = None
) -> Iterator[Shell]:
    """The shell in a terminal in this folder; with `rc_files` as people start it, else with completion sourced."""
    require(name)
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    ours = programs / "stationmaster"
    ours.write_text(
        f'#!/bin/sh\ncase "$1" in __complete|completion) exec {COMMAND} "$@" ;; esac\n'
        "printf got; printf ' <%s>' \"$@\"; echo ' .'\n"
    )
    ours.chmod(0o755)
    path = f"{programs}:{environ.get('PATH', '/usr/bin:/bin')}"
    with Tmux(environ={**environ, "PATH": path}, cwd=folder, columns=150, rows=50) as terminal:
        shell = Shell(name, terminal)
        terminal.type(_WITH_RC_FILES[name] if rc_files else _START[name])
        terminal.press("Enter")
        shell.run(_SETTINGS[name])
        shell.run(setup if setup is not None else SOURCE[name])
        yield shell


def _filled(lines: Sequence[str]) -> list[str]:
    return [line.strip() for line in lines if line.strip()]
