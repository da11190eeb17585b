"""Whatever of trackside is killed, the step goes on, runs once, and its end is known or judged by its files."""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.support.killing import kill
from tests.support.machines.trackside_bench import Bench, is_alive, step, until_dead
from tests.support.waiting import until

TRAIN = "echo begun >> ../runs; while [ ! -e ../go ]; do sleep 0.05; done; echo model > ../output/model; exit 0"


def safetensors(values: int) -> bytes:
    header = json.dumps({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    return len(header).to_bytes(8, "little") + header + b"\0" * 4 * values


def test_a_step_outlives_its_supervisor_and_its_exit_is_known(job: Bench) -> None:
    job.plan(step("train", TRAIN), step("after", "echo after"))
    job.start()
    pid = job.until_running()["pid"]
    job.kill_supervisor()
    alone = job.status()
    assert (alone["steps"][0]["state"], alone["steps"][0]["pid"]) == ("running", pid)
    (job.root / "go").touch()
    until(lambda: job.status()["steps"][0]["state"] == "done")
    assert job.status()["finished"] is None
    job.start()
    seen = job.until_finished()
    assert seen["finished"]["result"] == "done"
    assert (seen["steps"][0]["exit_code"], seen["steps"][0]["exit_known"]) == (0, True)
    assert (job.root / "runs").read_text() == "begun\n"


def test_a_supervisor_ends_with_its_folder_and_the_step_is_found_again_if_that_comes_back(job: Bench) -> None:
    job.plan(step("train", TRAIN))
    job.start()
    pid, supervisor = job.until_running()["pid"], job.supervisor_pid()
    job.own.rename(job.root / "away")
    until_dead(supervisor)
    assert is_alive(pid)
    (job.root / "away").rename(job.own)
    job.start()
    assert job.until_running()["pid"] == pid
    (job.root / "go").touch()
    assert job.until_finished()["finished"]["result"] == "done"


def test_a_supervisor_whose_folder_was_made_anew_touches_nothing_in_it(job: Bench) -> None:
    job.plan(step("train", TRAIN))
    job.start()
    pid, shim, supervisor = job.until_running()["pid"], job.shim_pid(), job.supervisor_pid()
    os.kill(supervisor, signal.SIGSTOP)
    job.own.rename(job.root / "away")
    job.start()
    job.until_running()
    kill(shim)
    kill(pid)
    os.kill(supervisor, signal.SIGCONT)
    until_dead(supervisor)
    assert job.status()["steps"][0]["state"] == "running"


def test_a_new_supervisor_finds_the_running_step(job: Bench) -> None:
    job.plan(step("train", TRAIN, tries=3))
    job.start()
    pid = job.until_running()["pid"]
    job.kill_supervisor()
    job.start()
    until(lambda: job.state_on_disk().get("supervisor") == job.supervisor_pid())
    assert job.until_running()["pid"] == pid
    (job.root / "go").touch()
    assert job.until_finished()["finished"]["result"] == "done"
    assert (job.root / "runs").read_text() == "begun\n"


@pytest.mark.parametrize("with_supervisor", [True, False])
def test_a_step_outlives_its_shim_and_is_judged_by_its_files(job: Bench, with_supervisor: bool) -> None:
    job.plan(step("train", TRAIN, expect=["output/model"]))
    job.start()
    pid = job.until_running()["pid"]
    if with_supervisor:
        job.kill_supervisor()
    shim = job.shim_pid()
    kill(shim)
    until(lambda: not is_alive(shim))
    assert is_alive(pid)
    assert job.status()["steps"][0]["state"] == "running"
    job.start()
    (job.root / "go").touch()
    seen = job.until_finished()["steps"][0]
    assert (seen["state"], seen["exit_known"], seen["exit_code"]) == ("done", False, None)
    assert (job.root / "runs").read_text() == "begun\n"


@pytest.mark.parametrize(
    ("expect", "content", "state"),
    [
        ([], b"", "failed"),
        (["output/model.safetensors"], safetensors(4), "done"),
        (["output/model.safetensors"], safetensors(3), "failed"),
        (["output/model.safetensors", "output/more"], safetensors(4), "failed"),
    ],
)
def test_an_unknown_exit_counts_as_done_only_with_whole_files(
    job: Bench, expect: list[str], content: bytes, state: str
) -> None:
    job.plan(step("train", "exec sleep 1000", expect=expect))
    job.start()
    pid = job.until_running()["pid"]
    job.kill_supervisor()
    shim = job.shim_pid()
    kill(shim)
    until(lambda: not is_alive(shim))
    (job.root / "output" / "model.safetensors").write_bytes(content)
    kill(pid)
    until(lambda: not is_alive(pid))
    assert job.status()["steps"][0]["state"] == state
    job.start()
    seen = job.until_finished()["steps"][0]
    assert (seen["state"], seen["failure"]) == (state, None if state == "done" else "unknown_exit")


def test_a_shim_killed_before_it_started_the_step_leaves_a_failed_try(job: Bench) -> None:
    job.plan(step("train", "echo ran", tries=2))
    folder = job.own / "steps" / "0.1"
    folder.mkdir(parents=True)
    seen = job.status()
    moment = {name: seen[name] for name in ("wall", "monotonic", "boot_id")}
    with (folder / "started").open("w") as started:
        fcntl.flock(started, fcntl.LOCK_EX)
        started.write(json.dumps({**moment, "shim": None}))
        started.flush()
        assert job.status()["steps"][0]["state"] == "running"
    assert job.status()["steps"][0]["failure"] == "unknown_exit"
    job.start()
    seen = job.until_finished()
    assert (seen["finished"]["result"], seen["steps"][0]["try"]) == ("done", 2)
    assert job.text() == "ran\n"


def test_what_the_dead_step_left_behind_does_not_keep_it_running(job: Bench) -> None:
    job.plan(step("train", "sleep 1000 & echo $! > ../left; exec sleep 1000", tries=1))
    job.start()
    pid = job.until_running()["pid"]
    until(lambda: (job.root / "left").exists() and (job.root / "left").read_text())
    shim = job.shim_pid()
    kill(shim)
    until(lambda: not is_alive(shim))
    kill(pid)
    assert job.until_finished()["steps"][0]["failure"] == "unknown_exit"
    left = int((job.root / "left").read_text())
    until(lambda: not is_alive(left), "the end of what was left")


def test_after_a_reboot_the_step_is_over_and_tried_again(job: Bench) -> None:
    job.plan(step("train", TRAIN, tries=2, training=True))
    job.environment["TRACKSIDE_BOOT_ID"] = "first"
    job.start()
    pid = job.until_running()["pid"]
    until((job.root / "runs").exists, "the training's first line")
    for process in (job.supervisor_pid(), job.shim_pid(), pid):
        kill(process)
    until(lambda: not is_alive(pid))
    job.environment["TRACKSIDE_BOOT_ID"] = "second"
    assert job.status()["steps"][0]["failure"] == "unknown_exit"
    assert not job.status()["training_alive"]
    job.start()
    job.until_running(0, 2)
    (job.root / "go").touch()
    assert job.until_finished()["finished"]["result"] == "done"
    assert (job.root / "runs").read_text() == "begun\nbegun\n"


def test_a_process_of_another_boot_is_never_signalled(job: Bench) -> None:
    job.plan(step("train", "exec sleep 1000"))
    job.environment["TRACKSIDE_BOOT_ID"] = "first"
    job.start()
    pid = job.until_running()["pid"]
    job.kill_supervisor()
    job.environment["TRACKSIDE_BOOT_ID"] = "second"
    job.call("stop", "--grace", "0")
    assert is_alive(pid)


def test_a_backoff_is_kept_across_supervisors(job: Bench) -> None:
    job.plan(step("train", "echo try; exit 1", tries=2, backoff_seconds=[3600.0]))
    job.start()
    until(lambda: job.status()["steps"][0]["failure"] == "exit")
    job.kill_supervisor()
    job.start()
    until(lambda: job.state_on_disk().get("supervisor") == job.supervisor_pid())
    seen = job.status()
    assert (seen["steps"][0]["state"], seen["steps"][0]["try"], seen["finished"]) == ("pending", 1, None)
    assert job.text() == "try\n"


@pytest.mark.parametrize("seed", range(4))
def test_killed_at_any_moment_no_step_runs_twice_and_all_are_done(job: Bench, seed: int) -> None:
    """Supervisors are killed at seeded moments until the plan is through; then every step has run exactly once."""
    chance = random.Random(seed)
    job.plan(*(step(f"s{n}", f"echo {n} >> ../runs; sleep 0.2", expect=["runs"]) for n in range(4)))
    for _ in range(40):
        if job.start()["finished"]:
            break
        time.sleep(chance.uniform(0.0, 0.4))  # the moment is the test's subject, nothing is waited for
        kill(job.supervisor_pid())
        until(lambda: not is_alive(job.supervisor_pid()))
    job.start()  # on a very busy computer none of them may have lived long enough to do anything
    assert job.until_finished()["finished"]["result"] == "done"
    assert (job.root / "runs").read_text() == "0\n1\n2\n3\n"


@pytest.mark.parametrize("seed", range(4))
def test_supervisor_and_shim_killed_at_any_moment_leave_each_try_run_at_most_once(job: Bench, seed: int) -> None:
    chance = random.Random(100 + seed)
    job.plan(step("train", "echo $$ >> ../runs; sleep 0.3; touch ../output/model", expect=["output/model"], tries=30))
    for _ in range(30):
        if job.start()["finished"]:
            break
        time.sleep(chance.uniform(0.0, 0.5))  # the moment is the test's subject, nothing is waited for
        victims = [job.supervisor_pid()]
        begun = [path for path in job.own.glob("steps/0.*/started") if not path.parent.name.endswith(".staged")]
        tries = sorted(begun, key=lambda path: int(path.parent.name.partition(".")[2]))
        if tries:
            victims.append(json.loads(tries[-1].read_text())["shim"]["pid"])
        for victim in victims:
            kill(victim)
            until_dead(victim)
    seen = job.until_finished()
    assert seen["finished"]["result"] == "done"
    runs = (job.root / "runs").read_text().split()
    assert len(runs) == len(set(runs))
    assert len(runs) <= seen["steps"][0]["try"]


def test_a_stopped_step_process_is_still_running(job: Bench) -> None:
    job.plan(step("train", "exec sleep 1000"))
    job.start()
    pid = job.until_running()["pid"]
    os.kill(pid, signal.SIGSTOP)
    assert job.status()["steps"][0]["state"] == "running"


def test_a_new_archive_beside_a_running_supervisor_does_no_harm(job_with_python: Bench, pyz: Path) -> None:
    job = job_with_python
    job.plan(step("train", TRAIN), step("after", "echo after"))
    job.start()
    job.until_running()
    (job.root / "trackside.pyz").write_bytes(b"#!/usr/bin/env python3\n" + pyz.read_bytes())
    (job.root / "go").touch()
    assert job.until_finished()["finished"]["result"] == "done"


def test_a_try_that_fails_after_the_archive_was_replaced_is_judged_and_retried(job_with_python: Bench) -> None:
    """Where the archive brings compiled code nothing is cached: what the supervisor needs it must have imported."""
    job = job_with_python
    job.plan(step("train", "until [ -e ../go ]; do sleep 0.1; done; exit 3", tries=2))
    job.start()
    job.until_running()
    newer = job.root / "newer.pyz"
    newer.write_bytes(b"#!/usr/bin/env python3\n" + (job.root / "trackside.pyz").read_bytes())
    newer.replace(job.root / "trackside.pyz")
    (job.root / "go").touch()
    seen = job.until_finished()
    assert (seen["finished"]["result"], seen["steps"][0]["try"]) == ("failed", 2)
    assert "Traceback" not in (job.own / "supervisor.log").read_text()
