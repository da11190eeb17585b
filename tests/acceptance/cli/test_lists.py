"""Lists fit their reader: a table with colours on a terminal, whole lines in a pipe, bare ids with --quiet."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator

import pytest

from tests.support.commands.cli_runs import Home
from tests.support.commands.command_line import PATIENCE_SECONDS, command_server
from tests.support.jobs.spine_values import spec
from tests.support.terminal.pty_program import PtyProgram

_NAME = "a name that is longer than a narrow terminal has room for"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with Home(tmp_path_factory.mktemp("lists")) as home:
        assert home.run("jobs").code == 0
        for job_id in ("first", "second"):
            home.store.jobs.submit(spec(job_id, provider="nowhere", name=_NAME))
        yield home


def at_terminal(home: Home, *words: str, columns: int = 120, **environ: str) -> PtyProgram:
    settings = {**home.environ, "PYTHONUTF8": "1", **environ}
    return PtyProgram(
        [command_server().own_command, *words], environ=settings, cwd=home.folder, columns=columns, rows=24
    )


def shown(home: Home, *words: str, columns: int = 120, **environ: str) -> str:
    with at_terminal(home, *words, columns=columns, **environ) as program:
        program.wait(PATIENCE_SECONDS)
        program.read_for(0.5)
        return program.written.decode()


def test_a_pipe_gets_whole_names_without_colours(shared: Home) -> None:
    ran = shared.run("jobs")
    assert ran.out.count(_NAME) == 2
    assert "\x1b" not in ran.out


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_a_terminal_gets_lines_that_fit(shared: Home, columns: int) -> None:
    lines = shown(shared, "jobs", columns=columns, NO_COLOR="1").splitlines()
    table = [line for line in lines if line.startswith(("ID", "first", "second"))]
    assert len(table) == 3
    assert max(map(len, table)) <= columns
    assert all("QUEUED" in line for line in table[1:])


def test_a_terminal_gets_colours_unless_it_asks_for_none(shared: Home) -> None:
    assert "\x1b[36mQUEUED\x1b[0m" in shown(shared, "jobs")
    assert "\x1b" not in shown(shared, "jobs", NO_COLOR="1")
    assert "\x1b" not in shown(shared, "jobs", TERM="dumb")


def test_quiet_lists_print_ids_alone(shared: Home) -> None:
    assert sorted(shared.run("jobs", "--quiet").out.split()) == ["first", "second"]
    assert shared.run("-q", "recipes", "list").out.splitlines()[0].count(" ") == 0
    (offer,) = shared.run("offers", "--quiet").out.splitlines()
    assert offer == shared.run("offers", "--json").json()["offers"][0]["id"], "not its number"


def test_jobs_watch_redraws_the_list_in_one_place(shared: Home) -> None:
    with at_terminal(shared, "jobs", "--watch", "--interval", "0.5", NO_COLOR="1") as program:
        program.until_written(r"(?s)ID .*ID ")
        written = program.written.decode()
        assert re.search(r"\x1b\[3A\r\x1b\[JID ", written), "the cursor goes back to the first of three lines"
        os.kill(program.pid, signal.SIGINT)
        assert program.wait(PATIENCE_SECONDS) == 0


def test_jobs_watch_in_a_pipe_prints_a_line_per_change(shared: Home) -> None:
    with shared.start("jobs", "--watch", "--interval", "0.5") as process:
        assert process.stdout is not None
        before = [process.stdout.readline() for _ in range(3)]
        shared.store.jobs.submit(spec("third", provider="nowhere", name="other"))
        added = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert [line.split()[0] for line in before] == ["ID", *sorted(["first", "second"], reverse=before[1][0] == "s")]
    assert added.startswith("third")
    assert rest == "", "nothing that did not change is printed again"
    assert process.returncode == 0
