"""`logs -f` over a server that is killed and comes back: every line once. `--errors` and `--tail`, too."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.commands.cli_runs import Home
from tests.support.commands.served_home import Client
from tests.support.servers.live_bench import WrittenJob
from tests.support.waiting import until

SECONDS = 120.0


@contextmanager
def serving(home: Home, *, port: str = "0") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A real `serve`, and its address; killed at the end of the block at the latest."""
    process = home.start("serve", "--port", port)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "answers at" in line, f"{line}{process.communicate()}"
        yield process, line.split()[-1]
    finally:
        process.kill()
        process.communicate(timeout=SECONDS)


def _answers(url: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(url.rpartition(":")[2]))) == 0


def test_a_server_that_is_killed_and_restarted_loses_and_repeats_no_line(home: Home, tmp_path: Path) -> None:
    with serving(home) as (serve, url):
        job = WrittenJob(home.store, "loud")
        job.write_log(b"line 0\n", b"line 1\n")
        client = Client(tmp_path, url, (home.path / "serve.token").read_text().strip())
        follower = client.start("logs", "loud", "-f")
        try:
            assert follower.stdout is not None
            assert follower.stderr is not None
            assert [follower.stdout.readline() for _ in range(2)] == ["line 0\n", "line 1\n"]
            serve.send_signal(signal.SIGKILL)
            serve.wait(SECONDS)
            until(lambda: not _answers(url), "the end of the server")
            job.write_log(b"line 2\n", b"line 3\n")
            assert follower.stderr.readline().startswith(f"note: connection lost, trying again: {url} does not answer")
            with serving(home, port=url.rpartition(":")[2]):
                assert follower.stderr.readline() == "note: connection is back\n"
                job.write_log(b"line 4\n")
                job.end()
                out, err = follower.communicate(timeout=SECONDS)
        finally:
            follower.kill()
            follower.wait()
    assert out.splitlines() == ["line 2", "line 3", "line 4"]
    assert (err, follower.returncode) == ("", 0)


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Home, Client]]:
    """A home with the log of a job that failed, and a client of its server."""
    folder = tmp_path_factory.mktemp("failed")
    with Home(folder) as home, serving(home) as (_, url):
        job = WrittenJob(home.store, "failed")
        job.write_log(b"install ok\n", stream="install.1")
        job.write_log(*(f"step {number}\n".encode() for number in range(1, 41)))
        job.write_log(b'Traceback (most recent call last):\n  File "t.py", line 1, in <module>\n', b"    main()\nValue")
        job.write_log(b"Error: no pictures\nbye\n")
        job.end()
        quiet = WrittenJob(home.store, "fine")
        quiet.write_log(b"all is well\n")
        quiet.end()
        yield home, Client(folder, url, (home.path / "serve.token").read_text().strip())


def test_only_errors_are_printed_with_a_little_around_them(failed: tuple[Home, Client]) -> None:
    for asked in failed:
        assert asked.run("logs", "failed", "--errors").out.splitlines() == [
            "1/train.1-39- step 39",
            "1/train.1-40- step 40",
            "1/train.1:41: Traceback (most recent call last):",
            '1/train.1:42:   File "t.py", line 1, in <module>',
            "1/train.1:43:     main()",
            "1/train.1:44: ValueError: no pictures",
            "1/train.1-45- bye",
        ]
        ran = asked.run("logs", "fine", "--errors")
        assert (ran.code, ran.out) == (0, "")
        assert "no errors were found" in ran.err
        assert asked.run("--quiet", "logs", "fine", "--errors").err == ""


def test_errors_as_json_have_their_kind(failed: tuple[Home, Client]) -> None:
    for asked in failed:
        lines = [json.loads(line) for line in asked.run("logs", "failed", "--errors", "--json").out.splitlines()]
        assert [line["line"] for line in lines if line["is_error"]] == [41, 42, 43, 44]
        assert lines[-2] == {
            "attempt": 1, "stream": "train.1", "passage": 1, "line": 44, "text": "ValueError: no pictures",
            "is_error": True, "kind": "other", "fatal": True,
        }  # fmt: skip


def test_the_last_lines_are_printed_also_of_a_job_that_is_followed(failed: tuple[Home, Client]) -> None:
    for asked in failed:
        assert asked.run("logs", "failed", "--tail", "2").out == "ValueError: no pictures\nbye\n"
        assert asked.run("logs", "failed", "-f", "-n", "3").out == "    main()\nValueError: no pictures\nbye\n"
        assert asked.run("logs", "failed", "-n", "0").out == ""
        assert asked.run("logs", "failed", "-n", "100").out == asked.run("logs", "failed").out
        pieces = asked.run("logs", "failed", "--tail", "1", "--json").out.splitlines()
        assert [json.loads(piece)["text"] for piece in pieces] == ["Error: no pictures\nbye\n"]


@pytest.mark.parametrize(
    "options",
    [("--grep", "x", "--errors"), ("--grep", "x", "-f"), ("--tail", "3", "--errors"), ("-n", "3", "--grep", "x")],
)
def test_options_that_do_not_go_together_are_refused(failed: tuple[Home, Client], options: tuple[str, ...]) -> None:
    ran = failed[0].run("logs", "failed", *options)
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 2
    assert ran.err.splitlines()[1].startswith("hint: ")
