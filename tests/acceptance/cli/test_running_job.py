"""Commands on a job that runs: shell, follow, interrupt, stop, cancel --keep, retry --resume."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from stationmaster.model import Desired, Outcome, Reason
from tests.support.commands.cli_runs import Home
from tests.support.commands.command_line import command_server
from tests.support.commands.json_documents import assert_documented
from tests.support.waiting import until

ENDLESS = ("--steps", "100000", "-p", "seconds_per_step=0.1", "-p", "save_every=20", "-p", "sample_every=100000")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, pictures: Path) -> Iterator[Home]:
    """A home with the job `long`, which has a checkpoint and would run for hours."""
    with Home(tmp_path_factory.mktemp("running")) as home:
        ran = home.run(
            "train", "--recipe", "tiny-lora@1", "--dataset", str(pictures), "--id", "long", "--json", *ENDLESS
        )
        assert (ran.code, ran.json()["state"]) == (0, "QUEUED"), ran.err
        until(lambda: home.has_checkpoint("long"), what="a checkpoint")
        yield home


def test_a_running_job_is_listed_with_its_progress(running: Home, pictures: Path) -> None:
    (row,) = running.run("jobs").out.splitlines()[1:]
    assert row.split()[:3] == ["long", pictures.name, "EXECUTING"]
    assert "/100000" in row


def test_ssh_opens_a_shell_in_the_machine_s_folder_that_does_not_die_with_it(running: Home, tmp_path: Path) -> None:
    shell = tmp_path / "shell"
    shell.write_text('#!/bin/sh\npwd -P\necho "machine=$STATIONMASTER_MACHINE"\n')
    shell.chmod(0o755)
    where, machine = running.run("ssh", "long", SHELL=str(shell)).out.splitlines()
    assert Path(where).is_relative_to(running.path / "machines")
    assert machine == "machine="


def test_interrupting_a_watch_leaves_the_training_alone(running: Home) -> None:
    watch = running.start("watch", "long")
    try:
        assert watch.stdout is not None
        assert "EXECUTING" in watch.stdout.readline()
        watch.send_signal(signal.SIGINT)
        out, err = watch.communicate(timeout=150)
    finally:
        watch.kill()
        watch.wait()
    assert (watch.returncode, "the training keeps running" in out) == (0, True), err
    assert running.job("long").desired is Desired.RUN


def test_samples_and_a_checkpoint_are_had_while_it_trains(running: Home) -> None:
    sampled = running.run("sample", "long", "--wait")
    assert sampled.code == 0, sampled.err
    places = [line.removeprefix("long: made ") for line in sampled.out.splitlines()]
    assert len(places) == 4
    assert all(Path(place).is_relative_to(running.path / "jobs" / "long" / "files") for place in places)
    assert all(Path(place).stat().st_size for place in places)
    saved = running.run("save", "long", "--wait", "--json")
    assert (saved.code, saved.json()["answer"]["state"]) == (0, "saved"), saved.err
    assert_documented("save --wait", saved.json())
    assert_documented("sample --wait", running.run("sample", "long", "--wait", "--json").json())
    assert_documented("sample", running.run("sample", "long", "--json").json())
    noted = running.run("save", "long", "--json").json()
    assert_documented("save", noted)
    assert "the training continues" in noted["note"]
    assert running.job("long").desired is Desired.RUN


def test_nothing_is_thrown_away_without_a_yes(running: Home) -> None:
    ran = running.run("cancel", "long")
    assert ran.code == 2
    assert "the checkpoint of step" in ran.err
    assert "--keep" in ran.err
    assert running.job("long").desired is Desired.RUN


def test_a_running_job_is_neither_removed_nor_retried(running: Home) -> None:
    assert running.run("jobs", "rm", "long", "--yes").code == 7
    assert running.run("retry", "long").code == 7


def test_a_pipe_that_is_closed_is_no_error(running: Home) -> None:
    done = subprocess.run(
        ["bash", "-c", '"$0" logs long | head -c 10 >/dev/null; exit ${PIPESTATUS[0]}', command_server().own_command],
        env=running.environ,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_stopped_job_is_followed_to_its_end_and_can_be_resumed(running: Home) -> None:
    """The last test: it ends the job."""
    home = running
    follow = home.start("logs", "long", "--follow")
    try:
        stopped = home.run("stop", "long", "--json")
        assert (stopped.code, "best checkpoint" in stopped.json()["note"]) == (0, True)
        assert home.run("watch", "long").code == 40
        out, _ = follow.communicate(timeout=150)
    finally:
        follow.kill()
        follow.wait()
    assert (follow.returncode, "/100000" in out) == (0, True)
    ended = home.job("long")
    assert (ended.outcome, ended.reason) == (Outcome.INCOMPLETE, Reason.STOPPED_BY_USER)
    assert Path(ended.model.address or "").is_file()
    _resume(home)


def _resume(home: Home) -> None:
    assert home.run("retry", "long", "--resume", "--id", "again").code == 0
    again = home.job("again")
    assert (again.spec.retry_of, again.attempt <= 1) == ("long", True)
    until(lambda: home.job("again").progress.step, what="a step of the resumed job")
    kept = home.run("cancel", "again", "--keep")
    assert kept.code == 0, kept.err
    assert home.run("watch", "again").code == 43
    assert "resum" in home.run("logs", "again").out.lower()
