"""A training is asked to save; health is asked again and again; the cleanup runs whatever happened before."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.machines.trackside_bench import Bench, bench, is_alive, step
from tests.support.waiting import until

#: Counts the requests that reach it, and writes a checkpoint of that number in two pieces.
TRAINER = """
import os, signal, sys, time
root, asked = sys.argv[1], []
signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))
print("ready", flush=True)
saved = 0
while True:
    touch = os.path.join(root, "work", "save-now")
    if os.path.exists(touch):
        os.unlink(touch)
        asked.append(1)
    if len(asked) > saved:
        saved += 1
        header = b'{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
        with open(os.path.join(root, "output", "model-%d.safetensors" % saved), "wb") as file:
            file.write(len(header).to_bytes(8, "little"))
            file.flush()
            time.sleep(0.3)
            file.write(header + b"x")
    time.sleep(0.02)
"""
BY_SIGNAL = {"signal": "USR1", "proof": "output/*.safetensors", "timeout_seconds": 60}
BY_FILE = {"touch": "work/save-now", "proof": "output/*.safetensors", "timeout_seconds": 60}
BY_COMMAND = {"argv": ["touch", "save-now"], "proof": "output/*.safetensors", "timeout_seconds": 60}


def trainer(job: Bench, **more: Any) -> dict[str, Any]:
    return {"name": "train", "argv": [sys.executable, "-S", "-c", TRAINER, str(job.root)], "training": True, **more}


@pytest.mark.parametrize("how", [BY_SIGNAL, BY_FILE, BY_COMMAND])
def test_a_training_saves_when_it_is_asked_once_for_each_request(job: Bench, how: dict[str, Any]) -> None:
    job.plan(trainer(job), save=how)
    job.start()
    until(lambda: "ready" in job.text())
    for _ in range(2):  # the second call is the same request and finds its end
        seen = job.call("save", "--id", "first", "--wait", "50")
        assert seen == {"state": "saved", "files": ["output/model-1.safetensors"]}
    assert job.call("save", "--id", "second", "--wait", "50")["files"] == ["output/model-2.safetensors"]
    assert job.status()["steps"][0]["state"] == "running", "it goes on training"


def test_samples_are_asked_for_beside_checkpoints(job: Bench) -> None:
    by_command = {"argv": [sys.executable, "-S", "-c", "import os; open(os.environ['ASK'], 'w')"], "proof": "output/*"}
    job.plan(trainer(job, env={"ASK": str(job.root / "work" / "save-now")}), save=BY_SIGNAL, sample=by_command)
    job.start()
    until(lambda: "ready" in job.text())
    seen = job.call("sample", "--id", "a", "--wait", "50")
    assert seen == {"state": "sampled", "files": ["output/model-1.safetensors"]}
    assert job.call("save", "--id", "a", "--wait", "50")["files"] == ["output/model-2.safetensors"]


@pytest.mark.parametrize(
    ("argv", "said"),
    [(["sh", "-c", "echo no database; exit 3"], "exit code 3: no database"), (["/no/such/program"], "No such file")],
)
def test_a_command_that_cannot_ask_says_why(job: Bench, argv: list[str], said: str) -> None:
    job.plan(trainer(job), save={"argv": argv, "proof": "output/*.safetensors"})
    job.start()
    until(lambda: "ready" in job.text())
    answer = job.call("save", "--id", "a", "--wait", "50")
    assert answer["state"] == "refused"
    assert said in answer["problem"]
    assert job.status()["steps"][0]["state"] == "running", "it goes on training"


def test_a_training_that_does_not_save_is_told_when_its_time_is_over(job: Bench) -> None:
    deaf = step("train", "trap '' USR1; echo ready; while :; do sleep 0.1; done", training=True)
    job.plan(deaf, save=BY_SIGNAL)
    job.start()
    until(lambda: "ready" in job.text())
    (job.root / "output" / "old.safetensors").write_bytes(b"from before")
    assert job.call("save", "--id", "a", "--wait", "0")["state"] == "saving"
    job.plan(deaf, save={**BY_SIGNAL, "timeout_seconds": 0.5})
    until(lambda: job.call("save", "--id", "b", "--wait", "1")["state"] == "timed_out", "the end of its time")


def test_nothing_is_asked_where_nothing_runs_or_no_way_is_declared(job: Bench) -> None:
    job.plan(step("train", "true", training=True), save=BY_SIGNAL)
    assert job.call("save", "--id", "a")["state"] == "not_running"
    job.plan(step("train", "true", training=True))
    assert job.call("save", "--id", "a")["state"] == "impossible"


def test_the_signal_reaches_the_training_alone_and_not_its_children(job: Bench) -> None:
    script = (
        "sh -c 'trap \"echo child >>got\" USR1; while :; do sleep 0.05; done' & "
        "trap 'echo mine >>got; touch ../output/x' USR1; echo ready; while :; do sleep 0.05; done"
    )
    job.plan(step("train", script, training=True), save={"signal": "USR1", "proof": "output/x"})
    job.start()
    until(lambda: "ready" in job.text())
    assert job.call("save", "--id", "a", "--wait", "50")["state"] == "saved"
    assert (job.root / "work" / "got").read_text() == "mine\n"


def test_a_step_whose_files_are_there_has_nothing_to_do(job: Bench) -> None:
    made = step("samples", "echo made; touch ../output/made.png", unless="output/*.png", optional=True)
    job.plan(step("train", "true", training=True), made)
    job.start()
    assert job.until_finished()["finished"]["result"] == "done"
    assert (job.root / "output" / "made.png").exists()
    with bench(job.root.parent / "other", pyz=job.root / "trackside.pyz", is_forked=True) as other:
        other.plan(step("train", "touch ../output/own.png", training=True), made)
        other.start()
        seen = other.until_finished()
    assert [one["state"] for one in seen["steps"]] == ["done", "done"]
    assert sorted(path.name for path in (other.root / "output").iterdir()) == ["own.png"]


def test_a_step_that_may_fail_fails_alone(job: Bench) -> None:
    job.plan(
        step("train", "true", training=True),
        step("samples", "exit 3", optional=True, tries=2, backoff_seconds=[0.05]),
        step("last", "true"),
    )
    job.start()
    seen = job.until_finished()
    assert seen["finished"]["result"] == "done"
    assert [(one["state"], one["try"], one["exit_code"]) for one in seen["steps"]] == [
        ("done", 1, 0),
        ("failed", 2, 3),
        ("done", 1, 0),
    ]


def until_health(job: Bench, ok: bool) -> Any:
    return until(lambda: (seen := job.status()["health"]) and seen["ok"] is ok and seen, f"a health of {ok}")


def test_health_is_asked_again_and_again_and_ends_nothing(job: Bench) -> None:
    check = step("health", 'test ! -e sick || { echo "no GPU"; exit 4; }')
    job.plan(check, step("train", "while [ ! -e go ]; do sleep 0.05; done"), health={**check, "every_seconds": 0.2})
    job.start()
    until_health(job, True)
    (job.root / "work" / "sick").touch()
    seen = until_health(job, False)
    assert (seen["failure"], seen["exit_code"], seen["tail"]) == ("exit", 4, "no GPU")
    (job.root / "work" / "sick").unlink()
    until_health(job, True)
    (job.root / "work" / "go").touch()
    assert job.until_finished()["finished"]["result"] == "done"


def test_a_health_check_that_hangs_is_ended_and_counts_as_a_failure(job: Bench) -> None:
    job.plan(
        step("train", "sleep 1000"), health={**step("health", "sleep 1000", timeout_seconds=0.3), "every_seconds": 60}
    )
    seen = job.call("check")
    assert (seen["ok"], seen["failure"]) == (False, "timeout")
    job.plan(step("train", "true"), health={"name": "health", "argv": ["no-such-program"], "every_seconds": 60})
    assert job.call("check")["failure"] == "could_not_start"


def until_clean(job: Bench) -> Any:
    return until(
        lambda: (seen := job.call("cleanup", "--grace", "5"))["state"] != "running" and seen, "the cleanup's end"
    )


def test_the_cleanup_runs_once_after_a_failure_and_tells_what_failed(job: Bench) -> None:
    job.plan(
        step("train", "exit 1", training=True),
        cleanup=[
            step("first", "echo tidy >>done; echo oh dear; exit 9", optional=True),
            step("second", "echo more >>done", optional=True),
        ],
    )
    job.start()
    job.until_finished()
    for _ in range(2):
        seen = until_clean(job)
        assert seen["state"] == "failed"
        assert [(one["name"], one["state"], one["exit_code"]) for one in seen["steps"]] == [
            ("first", "failed", 9),
            ("second", "done", 0),
        ]
        assert "oh dear" in seen["tail"]
    assert (job.root / "work" / "done").read_text() == "tidy\nmore\n"


def test_the_cleanup_ends_what_still_runs_before_it_begins(job: Bench) -> None:
    job.plan(
        step("train", "echo $$ >pid; while :; do sleep 0.05; done", training=True),
        cleanup=[
            step("look", 'kill -0 "$(cat pid)" 2>/dev/null && echo alive >found || echo gone >found', optional=True)
        ],
    )
    job.start()
    pid = job.until_running()["pid"]
    assert until_clean(job)["state"] == "done"
    assert not is_alive(pid)
    assert (job.root / "work" / "found").read_text() == "gone\n"


def test_a_cleanup_past_its_time_does_not_go_on_for_ever(job: Bench) -> None:
    job.plan(
        step("train", "true"),
        cleanup=[step("hang", "sleep 1000", timeout_seconds=0.3, optional=True)],
        stop_grace_seconds=0.2,
    )
    job.start()
    job.until_finished()
    seen = until_clean(job)
    assert (seen["state"], seen["steps"][0]["failure"]) == ("failed", "timeout")


def test_without_a_cleanup_there_is_nothing_to_wait_for(job: Bench, tmp_path: Path) -> None:
    job.plan(step("train", "true"))
    assert job.call("cleanup")["state"] == "nothing"


def test_a_training_that_saves_all_the_time_has_saved(job: Bench) -> None:
    """Every file is gone again before it has rested for a moment; that it is whole must do."""
    endless = TRAINER.replace("if len(asked) > saved:", "if True:").replace("time.sleep(0.3)", "time.sleep(0.01)")
    endless += "\n    if saved > 2: os.unlink(os.path.join(root, 'output', 'model-%d.safetensors' % (saved - 2)))\n"
    job.plan(
        {"name": "train", "argv": [sys.executable, "-S", "-c", endless, str(job.root)], "training": True},
        save=BY_SIGNAL,
    )
    job.start()
    until(lambda: "ready" in job.text())
    assert job.call("save", "--id", "a", "--wait", "50")["state"] == "saved"
