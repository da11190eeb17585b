"""Programs in a real terminal: a shell in tmux, with a server of its own, that a test types into and looks at."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.support.capabilities import require
from tests.support.killing import kill
from tests.support.waiting import PATIENCE_SECONDS, until

_PROMPT = "ready> "
_ENDED = "ended with"


@dataclass(frozen=True, slots=True, kw_only=True)
class Modes:
    """What a program may have switched in its terminal; a terminal that was restored is equal to `RESTORED`."""

    alternate_screen: bool
    cursor_visible: bool
    mouse_reported: bool
    echo: bool
    lines: bool  # the terminal gives whole lines to programs
    signals: bool  # Ctrl-C interrupts

    @classmethod
    def of(cls, flags: str, settings: str) -> Self:
        alternate, cursor, mouse = (flag == "1" for flag in flags.split())
        words = settings.split()
        return cls(
            alternate_screen=alternate,
            cursor_visible=cursor,
            mouse_reported=mouse,
            echo="echo" in words,
            lines="icanon" in words,
            signals="isig" in words,
        )


RESTORED = Modes(alternate_screen=False, cursor_visible=True, mouse_reported=False, echo=True, lines=True, signals=True)


class Tmux:
    """One terminal of a fixed size. At the end of the block its server and all that was started in it are ended."""

    def __init__(self, *, environ: Mapping[str, str], cwd: Path, columns: int = 120, rows: int = 40) -> None:
        require("tmux")
        # Not in a test's own folder: the path of a socket has at most 107 characters.
        self._folder = Path(tempfile.mkdtemp(prefix="tmux-"))
        self._environ = {**environ, "PS1": _PROMPT, "SHELL": "/bin/sh", "LC_ALL": "C.UTF-8"}
        self._cwd = cwd
        self._size = columns, rows
        self._shell = 0
        self._commands = 0

    def __enter__(self) -> Self:
        columns, rows = (str(number) for number in self._size)
        options = ("default-terminal", "tmux-256color"), ("history-limit", "2000"), ("status", "off")
        settings = [word for name, value in options for word in ("set", "-g", name, value, ";")]
        self._tmux("start-server", ";", *settings, "new-session", "-d", "-x", columns, "-y", rows, "/bin/sh", "-i")
        try:
            self._shell = int(self._about("#{pane_pid}"))
            self.until_shown(_PROMPT.strip())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._tmux("kill-server")
        finally:
            for pid in _of_session(self._shell):
                kill(pid)
            shutil.rmtree(self._folder, ignore_errors=True)

    def start(self, *words: str, **environ: str) -> None:
        """Start a command as a person does, by typing it; its exit code is shown once it has ended."""
        self._commands += 1
        variables = [f"{name}={value}" for name, value in environ.items()]
        line = shlex.join(["env", *variables, *words]) if variables else shlex.join(words)
        self.type(f'clear; {line}; echo "{_ENDED}" $?, $(({self._commands}))')
        self.press("Enter")

    def exit_code(self, *, seconds: float = PATIENCE_SECONDS) -> int:
        """Wait for the end of the command that was started last."""
        # A key that was pressed may be shown before it.
        pattern = re.compile(rf"{_ENDED} (\d+), {self._commands}$", re.MULTILINE)
        shown = until(
            lambda: pattern.search(self.screen()), "the end of the command", seconds=seconds, story=self.screen
        )
        return int(shown[1])

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        """Keys by their names in tmux: Enter, Escape, Down, C-c, q."""
        self._tmux("send-keys", *keys)

    def click(self, text: str) -> None:
        """Click on the first place that shows this text, as a terminal reports it to a program that asked for it."""
        assert self._about("#{mouse_any_flag}") == "1", "the program does not listen to the mouse"
        row, column = self.place_of(text)
        for end in "Mm":  # pressed, released
            self.type(f"\x1b[<0;{column + 1};{row + 1}{end}")

    def place_of(self, text: str) -> tuple[int, int]:
        """The row and the column, from 0, at which the text is shown first."""
        for row, line in enumerate(self.screen().splitlines()):
            if text in line:
                return row, line.index(text)
        raise AssertionError(f"{text!r} is not shown:\n{self.screen()}")

    def resize(self, columns: int, rows: int) -> None:
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p")

    def coloured_screen(self) -> str:
        """The screen with its escape sequences for colours and styles."""
        return self._tmux("capture-pane", "-p", "-e")

    def until_shown(self, *texts: str, seconds: float = PATIENCE_SECONDS) -> str:
        """Wait until all of the texts are on the screen; returns the screen."""

        def shown() -> str | None:
            screen = self.screen()
            return screen if all(text in screen for text in texts) else None

        return until(shown, f"{texts} on the screen", seconds=seconds, story=self.screen)

    def until_screen(self, fits: Callable[[list[str]], bool], what: str, *, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until the lines of the screen fit."""
        until(lambda: fits(self.screen().split("\n")[:-1]), what, seconds=seconds, story=self.screen)

    def running(self) -> list[int]:
        """The processes of this terminal, without its shell."""
        return [pid for pid in _of_session(self._shell) if pid != self._shell]

    def modes(self) -> Modes:
        flags = self._about("#{alternate_on} #{cursor_flag} #{mouse_any_flag}")
        device = self._about("#{pane_tty}")
        settings = subprocess.run(["stty", "-a", "-F", device], capture_output=True, text=True, check=True).stdout
        return Modes.of(flags, settings)

    def _about(self, form: str) -> str:
        return self._tmux("display-message", "-p", form).strip()

    def _tmux(self, *words: str) -> str:
        command: Sequence[str] = ["tmux", "-u", "-S", str(self._folder / "socket"), "-f", os.devnull, *words]
        done = subprocess.run(command, env=self._environ, cwd=self._cwd, capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, f"tmux {words[0]}: {done.stderr}"
        return done.stdout


def _of_session(leader: int) -> list[int]:
    """All processes of the session that this process leads, from the kernel."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended meanwhile
                continue
            if int(fields[3]) == leader and fields[0] != "Z":
                found.append(int(entry.name))
    return found
