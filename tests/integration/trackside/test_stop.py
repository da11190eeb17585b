"""After `stop` nothing runs and nothing will."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.support.killing import kill
from tests.support.machines.trackside_bench import Bench, is_alive, step, until_dead
from tests.support.waiting import until
from trackside.root import Root
from trackside.steps.shim import run_shim

COUNT_SIGNALS = """
import signal, sys, time
seen = []
def note(*_):
    print("asked", flush=True)
    seen.append(1)
signal.signal(signal.SIGUSR1, note)
print("ready", flush=True)
while not seen:
    time.sleep(0.02)
time.sleep(0.5)
print("saved", flush=True)
"""


def test_a_step_that_saves_on_its_signal_is_asked_once_and_given_the_time(job: Bench) -> None:
    job.plan({"name": "train", "argv": [sys.executable, "-c", COUNT_SIGNALS], "stop_signal": "USR1"})
    job.start()
    until(lambda: "ready" in job.text())
    calls = [job.popen("stop", "--grace", "50", stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [call.wait() for call in calls] == [0, 0]
    assert job.text() == "ready\nasked\nsaved\n"
    seen = job.status()
    assert (seen["steps"][0]["state"], seen["steps"][0]["exit_code"]) == ("stopped", 0)
    assert (seen["finished"]["result"], seen["finished"]["step"]) == ("stopped", "train")


@pytest.mark.parametrize("dead", [[], ["supervisor"], ["shim"], ["supervisor", "shim"]])
def test_a_step_that_ignores_its_signal_is_killed_with_all_its_children(job: Bench, dead: list[str]) -> None:
    script = "trap '' TERM; (trap '' TERM; while :; do sleep 0.05; done) & echo $! > ../child; wait; wait"
    job.plan(step("train", script, training=True), step("never", "echo never"))
    job.start()
    pid = job.until_running()["pid"]
    child = int(until(lambda: ((job.root / "child").exists() and (job.root / "child").read_text()) or None))
    for pid_to_kill in ([job.supervisor_pid()] if "supervisor" in dead else []) + (
        [job.shim_pid()] if "shim" in dead else []
    ):
        kill(pid_to_kill)
        until_dead(pid_to_kill)
    seen = job.call("stop", "--grace", "0.2")
    assert not is_alive(pid)
    until(lambda: not is_alive(child), "the child's end")
    assert [found["state"] for found in seen["steps"]] == ["stopped", "pending"]
    assert seen["finished"]["result"] == "stopped"
    assert not (job.own / "training.pid").exists()


def test_a_stop_before_the_start_keeps_everything_from_starting(job: Bench) -> None:
    job.plan(step("train", "echo never"))
    assert job.call("stop")["finished"]["result"] == "stopped"
    seen = job.start()
    assert (seen["finished"]["result"], seen["supervisor"]["alive"]) == ("stopped", False)
    assert seen["steps"][0]["state"] == "pending"
    assert job.text() == ""


def test_a_stop_after_the_end_changes_nothing(job: Bench) -> None:
    job.plan(step("train", "echo done"))
    job.start()
    finished = job.until_finished()["finished"]
    assert job.call("stop")["finished"] == finished
    assert job.call("stop")["finished"] == finished


def test_a_stop_between_two_tries_keeps_the_next_from_starting(job: Bench) -> None:
    job.plan(step("train", "echo try; exit 4", tries=2, backoff_seconds=[3600.0]))
    job.start()
    until(lambda: job.status()["steps"][0]["failure"] == "exit")
    seen = job.call("stop")
    assert (seen["finished"]["result"], seen["steps"][0]["state"]) == ("stopped", "failed")
    until(lambda: not job.status()["supervisor"]["alive"], "the supervisor's end")
    assert job.text() == "try\n"


def test_a_stop_cut_off_half_way_is_carried_through_by_the_supervisor(job: Bench) -> None:
    job.plan(step("train", "trap 'echo asked' TERM; while :; do sleep 0.05; done"))
    job.start()
    pid = job.until_running()["pid"]
    call = job.popen("stop", "--grace", "0.5", stdout=subprocess.DEVNULL)
    until(lambda: (job.own / "stop.json").exists())
    call.send_signal(signal.SIGKILL)
    call.wait()
    assert job.until_finished()["finished"]["result"] == "stopped"
    assert not is_alive(pid)


@pytest.mark.parametrize("attempt", range(5))
def test_a_stop_at_the_moment_of_the_start_leaves_nothing_running(job: Bench, attempt: int) -> None:
    job.plan(*(step(f"s{n}", "exec sleep 0.05") for n in range(6)), step("train", "exec sleep 1000"))
    job.start()
    until(lambda: job.status()["steps"][attempt]["state"] != "pending")
    seen = job.call("stop", "--grace", "5")
    assert seen["finished"]["result"] == "stopped"
    until(lambda: not job.status()["supervisor"]["alive"], "the supervisor's end")
    after = job.status()["steps"]
    assert all(found["state"] != "running" for found in after)
    assert after[-1]["state"] in ("pending", "stopped")


def test_no_step_starts_when_the_shim_finds_a_stop(job: Bench) -> None:
    job.plan(step("train", "echo never"))
    job.call("stop")
    run_shim(Root(str(job.root)), 0, 1)
    assert job.status()["steps"][0]["state"] == "pending"
    assert job.text() == ""
