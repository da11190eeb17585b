"""Nothing of the command line and the terminal app reaches a terminal around its guard."""

from __future__ import annotations

import ast
import io
import os
import pty
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from rich.color import ColorSystem
from rich.text import Text

import stationmaster.cli
import stationmaster.tui
from stationmaster.cli.console import PrintableConsole
from stationmaster.cli.terminal_output import guarded, unguarded
from tests.support.jobs.hostile_texts import CONTROLS, ESCAPES

_FACES = [Path(str(package.__file__)).parent for package in (stationmaster.cli, stationmaster.tui)]
_DRAWS = {"terminal_output.py", "console.py", "running.py"}
"""What may send escape sequences of our own to a terminal; `running.py` restores it after the app."""
_MAY_ASK_FOR_THE_TERMINAL = {*_DRAWS, "progress_bars.py", "progress_lines.py", "logging.py", "speaking.py"}
"""What draws on it, or colours text that it has made printable."""
_AROUND = {("sys", "__stdout__"), ("sys", "__stderr__"), ("os", "write"), ("os", "writev"), ("os", "fdopen")}


def sources() -> Iterator[tuple[Path, ast.Module]]:
    for folder in _FACES:
        for path in sorted(folder.rglob("*.py")):
            yield path, ast.parse(path.read_text())


@pytest.mark.parametrize(("path", "tree"), [pytest.param(*each, id=each[0].name) for each in sources()])
def test_nothing_prints_around_the_guard(path: Path, tree: ast.Module) -> None:
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=name):
                around = (module, name) in _AROUND and path.name not in _DRAWS
                assert not around, f"{path}:{node.lineno}: {module}.{name}"
            case ast.ImportFrom(module="rich.console" | "rich", names=names) if path.name not in _DRAWS:
                assert not {each.name for each in names} & {"Console", "print", "get_console"}, f"{path}:{node.lineno}"
            case ast.ImportFrom(module="stationmaster.cli.terminal_output", names=names):
                asks = "unguarded" in {each.name for each in names}
                assert not asks or path.name in _MAY_ASK_FOR_THE_TERMINAL, f"{path}:{node.lineno}"
            case ast.Constant(value=str() as text) if path.name not in _MAY_ASK_FOR_THE_TERMINAL:
                assert not CONTROLS.search(text), f"{path}:{node.lineno}: an escape"
            case ast.Attribute(value=ast.Name(id="json"), attr="dump"):
                raise AssertionError(f"{path}:{node.lineno}: JSON is printed by print_json, which escapes what it must")


def test_main_guards_the_terminal_before_it_runs_a_command() -> None:
    tree = ast.parse((_FACES[0] / "main.py").read_text())
    (main,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "main")
    called = [node.func.id for node in ast.walk(main) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    assert called.index("guard_terminal") < called.index("_run") < called.index("end_output")


@pytest.fixture
def terminal() -> Iterator[tuple[int, io.TextIOWrapper]]:
    """Our end of a terminal, and the program's."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w", encoding="ascii") as stream:
        yield ours, stream
    os.close(ours)


def test_text_and_bytes_take_the_same_way_in_their_order(terminal: tuple[int, io.TextIOWrapper]) -> None:
    ours, stream = terminal
    text = guarded(stream)
    text.write(f"{ESCAPES}\n")
    text.buffer.write(b"b\xff\x1b")
    text.flush()
    text.buffer.write(b"[2Jc\x1b[")
    text.write("")
    text.buffer.end()
    assert unguarded(text) is stream
    assert text.isatty()
    stream.close()
    shown = _read_to_the_end(ours).decode("ascii").replace("\r\n", "\n")
    assert not CONTROLS.search(shown)
    assert shown.endswith("g[bold red]h[/]\nb\\ufffdc\\x1b[")


def _read_to_the_end(terminal: int) -> bytes:
    """All that was printed; a terminal whose other side is closed ends with an error."""
    shown = b""
    with suppress(OSError):
        while piece := os.read(terminal, 65536):
            shown += piece
    return shown


def test_a_table_has_our_colours_and_nothing_elses() -> None:
    console = PrintableConsole(force_terminal=True, width=200, color_system="standard")
    assert console._color_system is ColorSystem.STANDARD
    with console.capture() as captured:
        console.print(Text(ESCAPES, style="red"))
    shown = captured.get()
    assert shown.startswith("\x1b[31ma")
    assert not CONTROLS.search(shown.replace("\x1b[31m", "").replace("\x1b[0m", ""))
