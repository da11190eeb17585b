"""Steps in real containers: their process, their end and what is left of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.killing import kill
from tests.support.machines.container_bench import IMAGE, Podman
from tests.support.machines.trackside_bench import Bench, bench, is_alive, step
from tests.support.waiting import until

MIB = 1024 * 1024


@pytest.fixture(scope="session")
def podman() -> Iterator[Podman]:
    engine = Podman()
    yield engine
    engine.close()


@pytest.fixture
def job(tmp_path: Path, podman: Podman, pyz: Path) -> Iterator[Bench]:
    with bench(tmp_path / "job", pyz=pyz, is_forked=True) as made:
        made.environment.update(podman.environment)
        yield made


def contained(name: str, script: str, **more: Any) -> dict[str, Any]:
    return step(name, script, contained=True, **more)


def container(**more: Any) -> dict[str, Any]:
    return {"engine": "podman", "image": IMAGE, "mounts": [], "network": "host", **more}


def finished(job: Bench) -> dict[str, Any]:
    seen: dict[str, Any] = job.until_finished()
    return dict(seen["steps"][0], result=seen["finished"]["result"])


def test_a_step_runs_in_its_image_and_leaves_its_files_in_the_job_s_folder(
    job: Bench, podman: Podman, tmp_path: Path
) -> None:
    models = tmp_path / "models"
    models.mkdir()
    (models / "base").write_text("weights")
    script = 'echo "$GREETING; $(cat /models/base)"; test ! -e /etc/debian_version; echo out >"$ROOT/output/x"; pwd'
    job.plan(
        contained(
            "train", script, training=True, env={"GREETING": "it's $(id)", "ROOT": str(job.root)}, expect=["output/x"]
        ),
        container=container(mounts=[{"source": str(models), "target": "/models", "read_only": True}]),
    )
    job.start()
    assert finished(job)["result"] == "done"
    assert job.text().splitlines() == ["it's $(id); weights", str(job.root / "work")]
    assert (job.root / "output" / "x").read_text() == "out\n"
    until(lambda: podman.containers() == [], "the container's removal")


def test_an_exit_code_is_the_step_s_own(job: Bench, podman: Podman) -> None:
    job.plan(contained("train", "exit 41"), container=container())
    job.start()
    seen = finished(job)
    assert (seen["result"], seen["exit_code"], seen["failure"]) == ("failed", 41, "exit")
    until(lambda: podman.containers() == [], "the container's removal")


def test_a_step_that_needs_too_much_memory_is_told_as_such(job: Bench) -> None:
    job.plan(
        contained("train", "echo big; dd if=/dev/zero of=/dev/null bs=200M count=1"),
        container=container(memory_bytes=32 * MIB),
    )
    job.start()
    seen = finished(job)
    assert (seen["result"], seen["failure"], seen["exit_code"]) == ("failed", "out_of_memory", 137)


def test_a_program_that_the_image_lacks_is_a_failure_that_the_log_explains(job: Bench) -> None:
    job.plan({"name": "train", "argv": ["no-such-program"], "contained": True}, container=container())
    job.start()
    assert finished(job)["result"] == "failed"
    assert "no such file" in job.text().lower()


def test_an_image_that_is_not_there_is_a_clear_failure(job: Bench) -> None:
    job.plan(contained("train", "true"), container=container(image="local/nothing:1"))
    job.start()
    assert finished(job)["failure"] == "could_not_start"
    assert "local/nothing" in job.text()


def test_secrets_reach_the_container_and_no_command_line(job: Bench) -> None:
    script = (
        'cat "$ROOT"/argv 2>/dev/null; echo "length ${#HF_TOKEN}"; while [ ! -e "$ROOT/work/go" ]; do sleep 0.1; done'
    )
    job.plan(contained("train", script, secrets=["HF_TOKEN"], env={"ROOT": str(job.root)}), container=container())
    job.start(HF_TOKEN="hf_planted_secret")
    running = job.until_running()
    command = Path(f"/proc/{running['pid']}/cmdline").read_bytes()
    (job.root / "work" / "go").touch()
    assert finished(job)["result"] == "done"
    assert b"--env=HF_TOKEN" in command
    assert b"hf_planted_secret" not in command
    assert "length 17" in job.text()


def until_contained(job: Bench) -> int:
    """The pid of the container's first process, once it runs."""
    path = job.own / "steps" / "0.1" / "container.json"
    return int(until(lambda: path.exists() and json.loads(path.read_text())["pid"], "the container's pid"))


def test_the_stop_signal_reaches_the_process_and_its_end_is_awaited(job: Bench, podman: Podman) -> None:
    script = "trap 'echo saving; sleep 0.3; echo saved; exit 0' INT; echo ready; while :; do sleep 0.1; done"
    job.plan(contained("train", script, training=True, stop_signal="INT"), container=container())
    job.start()
    pid = until_contained(job)
    until(lambda: "ready" in job.text())
    seen = job.call("stop", "--grace", "50")
    assert seen["finished"]["result"] == "stopped"
    assert job.text().splitlines() == ["ready", "saving", "saved"], "the signal came once"
    assert not is_alive(pid)
    until(lambda: podman.containers() == [], "the container's removal")


def test_a_training_is_asked_by_a_command_in_its_own_container(job: Bench) -> None:
    script = "echo ready; while :; do test -e asked && mv asked ../output/saved; sleep 0.1; done"
    ask = {"argv": ["sh", "-c", "echo $WORD-$(hostname) >asked"], "proof": "output/saved"}
    train = contained("train", script, training=True, env={"WORD": "please"})
    job.plan(train, container={**container(), "network": "none"}, save=ask)
    job.start()
    until_contained(job)
    until(lambda: "ready" in job.text())
    assert job.call("save", "--id", "a", "--wait", "50")["state"] == "saved"
    assert (job.root / "output" / "saved").read_text().startswith("please-")


def test_a_step_that_ignores_its_signal_is_killed(job: Bench, podman: Podman) -> None:
    script = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
    job.plan(contained("train", script), container=container(memory_bytes=64 * MIB))
    job.start()
    pid = until_contained(job)
    until(lambda: "ready" in job.text())
    seen = job.call("stop", "--grace", "0.5")
    assert seen["finished"]["result"] == "stopped"
    until(lambda: not is_alive(pid), "the container's end")
    ended = json.loads((job.own / "steps" / "0.1" / "exit.json").read_text())
    assert (ended["exit_code"], ended["out_of_memory"]) == (137, False), "our own KILL is no lack of memory"
    until(lambda: podman.containers() == [], "the container's removal")


def test_a_step_past_its_time_is_ended_with_its_container(job: Bench, podman: Podman) -> None:
    job.plan(
        contained("train", "trap '' TERM; while :; do sleep 0.1; done", timeout_seconds=1.0),
        container=container(),
        stop_grace_seconds=0.2,
    )
    job.start()
    seen = finished(job)
    assert (seen["result"], seen["failure"]) == ("failed", "timeout")
    until(lambda: podman.containers() == [], "the container's removal")


def test_a_container_outlives_the_engine_s_own_process_and_keeps_its_exit_code(job: Bench) -> None:
    script = 'echo ready; while [ ! -e "$ROOT/work/go" ]; do sleep 0.1; done; exit 7'
    job.plan(contained("train", script, env={"ROOT": str(job.root)}), container=container())
    job.start()
    pid = until_contained(job)
    kill(job.until_running()["pid"])
    job.kill_supervisor()
    job.start()
    assert is_alive(pid)
    assert job.status()["finished"] is None
    (job.root / "work" / "go").touch()
    assert finished(job)["exit_code"] == 7


def test_what_a_killed_shim_left_behind_does_not_meet_the_next_try(job: Bench, podman: Podman) -> None:
    script = 'cd "$ROOT/work"; test -e second && exit 0; touch second; sleep 1000'
    job.plan(
        contained("train", script, tries=2, backoff_seconds=[0.1], env={"ROOT": str(job.root)}), container=container()
    )
    job.start()
    first = until_contained(job)
    client = job.until_running()["pid"]
    kill(job.shim_pid())
    kill(client)
    assert finished(job)["result"] == "done"
    assert not is_alive(first)
    until(lambda: podman.containers() == [], "the container's removal")


def test_a_further_try_in_a_container_goes_on_from_the_file_under_the_same_path(job: Bench) -> None:
    script = 'test $# = 1 && exec cat "$1"; echo left >"$ROOT/output/state"; exit 1'
    again = {"pattern": "output/*", "argv": ["<P>"], "path": "<P>", "folder": "<F>"}
    train = contained("train", script, tries=2, backoff_seconds=[0.1], env={"ROOT": str(job.root)}, again=again)
    job.plan({**train, "argv": [*train["argv"], "sh"]}, container=container())
    job.start()
    assert finished(job)["result"] == "done"
    assert job.text() == "trackside: goes on from output/state\nleft\n"


def test_a_training_finds_trackside_in_front_of_the_image_s_own_python_path(job: Bench, podman: Podman) -> None:
    podman.run("create", "--name=base", IMAGE, "true")
    podman.run("commit", "--quiet", "--change=ENV PYTHONPATH=/image/python", "base", "local/with-path:1")
    podman.run("rm", "base")
    script = 'echo "$PYTHONPATH"; ls "${PYTHONPATH%%:*}"; echo "$TRACKSIDE_DATABASE"'
    job.plan(contained("train", script, training=True), container=container(image="local/with-path:1"))
    job.start()
    assert finished(job)["result"] == "done"
    path, listed, database = job.text().splitlines()
    assert path.split(":")[1:] == ["/image/python"]
    assert (listed, database) == ("trackside", str(job.root / "logs" / "aitk_db.db"))


def test_a_training_in_a_container_is_recorded_by_its_own_process(job: Bench) -> None:
    script = 'while [ ! -e "$ROOT/work/go" ]; do sleep 0.1; done'
    job.plan(
        contained("train", script, training=True, env={"ROOT": str(job.root)}),
        container=container(),
        monitoring={"interval_seconds": 1},
    )
    job.start()
    pid = until_contained(job)
    newest = job.own / "newest_sample.json"
    until(lambda: newest.exists() and pid in [each[0] for each in json.loads(newest.read_text())["processes"]])
    (job.root / "work" / "go").touch()
    assert finished(job)["result"] == "done"
    series = {entry["table"]: entry["columns"] for entry in job.status({})["series"]}
    assert series["TrainingEvent"]["event_type"] == ["training_start", "training_end"]


def test_a_training_that_the_kernel_kills_for_lack_of_memory_is_recorded_as_that(job: Bench) -> None:
    script = "while [ ! -e go ]; do sleep 0.1; done; dd if=/dev/zero of=/dev/null bs=200M count=1"
    job.plan(
        contained("train", script, training=True),
        container=container(memory_bytes=64 * MIB),
        monitoring={"interval_seconds": 1},
    )
    job.start()
    pid = until_contained(job)
    newest = job.own / "newest_sample.json"
    until(lambda: newest.exists() and pid in [each[0] for each in json.loads(newest.read_text())["processes"]])
    (job.root / "work" / "go").touch()
    assert finished(job)["failure"] == "out_of_memory"
    series = {entry["table"]: entry["columns"] for entry in job.status({})["series"]}
    assert series["TrainingEvent"]["event_type"] == ["training_start", "oom_error"]
    facts = dict(zip(series["RunInfo"]["key"], series["RunInfo"]["value"], strict=True))
    assert facts["memory_limit_gb"] == "0.0625"
    assert (facts["exit_code"], facts["exit_signal"]) == ("137", "9")


def test_a_journal_in_shared_memory_is_outside_the_container_too(job: Bench, tmp_path: Path) -> None:
    database = Path("/dev/shm") / tmp_path.name / "run.db"
    journals = Path(f"{database}.journals")
    script = f"echo step >{journals}/left"
    job.plan(
        contained("train", script, training=True, env={"TRACKSIDE_DATABASE": str(database)}), container=container()
    )
    try:
        job.start()
        assert finished(job)["result"] == "done"
        assert (journals / "left").read_text() == "step\n"
    finally:
        shutil.rmtree(database.parent)
