"""A plan runs to its end, step by step, and tells how it went."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.killing import kill
from tests.support.machines.trackside_bench import PACKAGE, Bench, bench, interpreters, is_alive, log_bytes, step
from tests.support.waiting import until
from trackside.root import Root
from trackside.steps.shim import run_shim


@pytest.mark.parametrize("python", interpreters(), ids=lambda path: Path(path).parent.parent.name)
def test_every_python_starts_tells_and_stops(tmp_path: Path, pyz: Path, python: str) -> None:
    with bench(tmp_path / "a job", pyz=pyz, python=python) as job:
        job.plan(step("check", "echo checked"), step("train", "echo training; exec sleep 1000", training=True))
        job.start()
        running = job.until_running(1)
        seen = job.status()
        assert [found["state"] for found in seen["steps"]] == ["done", "running"]
        assert seen["training_alive"]
        noted = job.own / "training.pid"
        until(lambda: noted.exists() and noted.read_text() == f"{running['pid']}\n", "the training's process on disk")
        until(lambda: log_bytes(job.status(), "1.1") == b"training\n")
        stopped = job.call("stop", "--grace", "10")
        assert stopped["steps"][1]["state"] == "stopped"
        assert stopped["finished"]["result"] == "stopped"
        assert not stopped["training_alive"]
        assert not is_alive(running["pid"])
        assert not (job.own / "training.pid").exists()


def test_it_runs_from_an_installed_package_in_any_folder(tmp_path: Path) -> None:
    with bench(tmp_path / "job", pyz=None) as job:
        job.environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
        job.plan(step("show", "echo $PYTHONPATH; pwd"))
        job.start()
        assert job.until_finished()["finished"]["result"] == "done"
        assert job.text() == f"{PACKAGE.parent}\n{job.root}/work\n"


def test_steps_run_in_order_with_their_environment_and_folder(job: Bench) -> None:
    job.environment["STATIONMASTER_MACHINE"] = "machine-7"
    job.plan(
        step("one", "echo $STATIONMASTER_MACHINE $GREETING; pwd >&2", env={"GREETING": "hello"}, cwd="work/deep"),
        step("two", "cat; echo two"),
    )
    job.start()
    seen = job.until_finished()
    assert seen["finished"] == {"result": "done", "step": None, "exit_code": None, "at": seen["steps"][1]["ended_at"]}
    assert job.text() == f"machine-7 hello\n{job.root}/work/deep\ntwo\n"
    assert seen["steps"][0]["ended_at"] <= seen["steps"][1]["started_at"]

    def states_on_disk() -> list[str]:
        return [found["state"] for found in job.state_on_disk().get("steps", [])]

    until(lambda: states_on_disk() == ["done", "done"], "the supervisor's last record, which a status may come before")


def test_a_step_gets_default_signals_and_its_own_session(job: Bench) -> None:
    script = "import os, signal; print(signal.getsignal(signal.SIGPIPE).name, os.getsid(0) == os.getpid())"
    probe = "import signal, sys; signal.signal(signal.SIGPIPE, signal.SIG_DFL); " + script
    job.plan({"name": "probe", "argv": [sys.executable, "-c", probe]}, step("sigs", "grep SigIgn /proc/self/status"))
    job.start()
    job.until_finished()
    probed, ignored = job.text().splitlines()
    assert probed == "SIG_DFL True"
    assert int(ignored.split()[1], 16) & 0x7FFFFFFF == 0  # above are those that the C library keeps to itself


def test_a_failing_step_is_tried_again_and_then_the_plan_has_failed(job: Bench) -> None:
    job.plan(step("flaky", "echo try; exit 3", tries=3, backoff_seconds=[0.1]), step("never", "echo never"))
    job.start()
    seen = job.until_finished()
    assert (seen["finished"]["result"], seen["finished"]["step"], seen["finished"]["exit_code"]) == (
        "failed",
        "flaky",
        3,
    )
    assert (seen["steps"][0]["try"], seen["steps"][0]["failure"], seen["steps"][1]["state"]) == (3, "exit", "pending")
    assert job.text() == "try\ntry\ntry\n"


def test_a_step_that_works_at_the_second_try_is_done(job: Bench) -> None:
    job.plan(step("flaky", "test -e mark && exit 0; touch mark; exit 1", tries=2), step("next", "echo next"))
    job.start()
    seen = job.until_finished()
    assert seen["finished"]["result"] == "done"
    assert [found["try"] for found in seen["steps"]] == [2, 1]


def test_what_a_failed_try_left_running_is_gone_before_the_next(job: Bench) -> None:
    script = "test -e first && { kill -0 $(cat first) 2>/dev/null && echo alive; exit 0; }; sleep 1000 & echo $! >first"
    job.plan(step("messy", script + "; exit 1", tries=2, backoff_seconds=[0.2]))
    job.start()
    assert job.until_finished()["finished"]["result"] == "done"
    left = int((job.root / "work" / "first").read_text())
    until(lambda: not is_alive(left), "the end of what was left")


def test_exit_code_0_without_the_expected_file_is_a_failure(job: Bench) -> None:
    job.plan(step("train", "echo done", expect=["output/*.safetensors"]))
    job.start()
    seen = job.until_finished()
    assert seen["finished"]["result"] == "failed"
    assert (seen["steps"][0]["failure"], seen["steps"][0]["exit_code"]) == ("missing_output", 0)


def test_a_done_step_stays_done_when_its_file_is_taken_away(job: Bench) -> None:
    job.plan(step("train", "echo x > ../output/model", expect=["output/model"]))
    job.start()
    job.until_finished()
    job.verdict_on_disk()
    (job.root / "output" / "model").unlink()
    assert job.status()["steps"][0]["state"] == "done"
    assert job.start()["finished"]["result"] == "done"


def test_a_program_that_is_not_there_could_not_start(job: Bench) -> None:
    job.plan({"name": "train", "argv": ["no-such-trainer"]})
    job.start()
    seen = job.until_finished()["steps"][0]
    assert (seen["state"], seen["failure"], seen["exit_code"]) == ("failed", "could_not_start", None)
    assert "could not start no-such-trainer" in job.text()


def test_a_step_killed_by_a_signal_tells_which(job: Bench) -> None:
    job.plan(step("train", "kill -9 $$"))
    job.start()
    seen = job.until_finished()["steps"][0]
    assert (seen["failure"], seen["signal"], seen["exit_code"], seen["exit_known"]) == ("exit", 9, None, True)


def test_a_step_past_its_time_is_ended_and_counts_as_timed_out(job: Bench) -> None:
    job.plan(step("train", "echo begun; exec sleep 1000", timeout_seconds=0.3))
    job.start()
    seen = job.until_finished()["steps"][0]
    assert (seen["state"], seen["failure"], seen["signal"]) == ("failed", "timeout", 15)


def test_a_step_that_ignores_its_time_is_killed(job: Bench) -> None:
    job.plan(step("train", "trap '' TERM; while :; do sleep 0.05; done", timeout_seconds=0.3), stop_grace_seconds=0.2)
    job.start()
    seen = job.until_finished()["steps"][0]
    assert (seen["failure"], seen["signal"]) == ("timeout", 9)


def test_two_starts_at_once_make_one_supervisor(job: Bench) -> None:
    job.plan(step("train", "echo once; exec sleep 1000"))
    calls = [job.popen("start", stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) for _ in range(4)]
    answers = [json.loads(call.communicate()[0]) for call in calls]
    assert {call.returncode for call in calls} == {0}
    assert all(answer["supervisor"]["alive"] for answer in answers)
    assert len({answer["supervisor"]["pid"] for answer in answers}) == 1
    job.until_running()
    until(lambda: job.text() == "once\n")


def test_start_lets_go_of_everything_its_caller_holds(job: Bench) -> None:
    job.plan(step("train", "exec sleep 1000"))
    reading, writing = os.pipe()
    call = job.popen("start", stdin=writing, stdout=writing, stderr=writing, pass_fds=[writing])
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()  # ends only if neither supervisor, shim nor step holds the other end
    assert call.wait() == 0
    assert json.loads(answer)["supervisor"]["alive"]
    job.until_running()


def test_the_supervisor_outlives_the_session_that_started_it(job: Bench) -> None:
    job.plan(step("train", "exec sleep 1000"))
    script = '"$@" >/dev/null; echo started; exec sleep 1000'
    shell = subprocess.Popen(
        ["/bin/sh", "-c", script, "sh", *job.command, "--root", str(job.root), "start"],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert shell.stdout is not None
    assert shell.stdout.readline() == b"started\n"
    os.killpg(shell.pid, 9)
    shell.wait()
    shell.stdout.close()
    job.until_running()
    assert job.status()["supervisor"]["alive"]


def test_a_descriptor_of_the_supervisor_never_reaches_a_step(job: Bench) -> None:
    # `ls` lists its own, which it has from the step: those of the shell change while it builds the pipe.
    job.plan(step("show", "ls -l /proc/self/fd | grep -c supervisor; exec sleep 1000"))
    job.start()
    job.until_running()
    until(lambda: job.text() == "0\n")


def test_files_of_trackside_are_for_its_user_alone(job: Bench) -> None:
    job.plan(step("train", "true"))
    job.start()
    job.until_finished()
    job.verdict_on_disk()
    until((job.own / "state.json").exists, "the supervisor's record")
    paths = [job.own, *job.own.glob("*.json"), *job.own.glob("steps/*/*")]
    assert len(paths) > 5
    assert all(path.stat().st_mode & 0o077 == 0 for path in paths)


def test_a_shim_that_finds_its_try_begun_does_nothing(job: Bench) -> None:
    job.plan(step("train", "echo ran"))
    job.start()
    job.until_finished()
    run_shim(Root(str(job.root)), 0, 1)
    assert job.text() == "ran\n"
    assert [path.name for path in (job.own / "steps").glob("[!.]*")] == ["0.1"]


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["dance"], 2),
        (["status", "--since", "[1"], 2),
        (["status", "--max-bytes", "many"], 2),
        (["stop", "--grace", "-1"], 2),
        (["unpack", "a"], 2),
        (["status"], 1),
    ],
)
def test_trouble_is_one_line_and_an_exit_status(job: Bench, arguments: list[str], status: int) -> None:
    answer = job.run(*arguments)
    assert (answer.returncode, answer.stdout, answer.stderr.count(b"\n")) == (status, b"", 1)


def test_a_full_pipe_that_nobody_reads_does_not_leave_a_traceback(job: Bench) -> None:
    job.plan(step("train", "yes | head -c 300000"))
    job.start()
    job.until_finished()
    call = job.popen("logs", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert call.stdout is not None
    assert call.stderr is not None
    call.stdout.close()
    assert call.stderr.read() == b""
    call.stderr.close()
    assert call.wait() == 1


def test_killing_the_step_itself_is_seen(job: Bench) -> None:
    job.plan(step("train", "exec sleep 1000"))
    job.start()
    kill(job.until_running()["pid"])
    assert job.until_finished()["steps"][0]["signal"] == 9
