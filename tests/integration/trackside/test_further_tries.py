"""A failed step is tried again where that can help, and goes on from what the try before has left."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.support.killing import kill
from tests.support.machines.trackside_bench import Bench, log_bytes, step
from tests.support.waiting import until

#: Keeps a state for each step, its index last. A first try hangs after step 3, with the state of step 4 half written.
TRAINER = """
import json, os, sys, time
root, options = sys.argv[1], dict(option.split("=", 1) for option in sys.argv[2:])
step = 0
if "--resume" in options:
    with open(os.path.join(options["--resume"], "state.json")) as file:
        step = json.load(file)["step"]
    assert options["--index"] == os.path.join(options["--resume"], "state.json")
print("begins after step %d" % step, flush=True)
while step < 6:
    step += 1
    folder = os.path.join(root, "output", "cat-%06d-state" % step)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "state.json"), "w") as file:
        file.write('{"step": ' if step == 4 and not options else json.dumps({"step": step}))
    if step == 4 and not options:
        print("half way", flush=True)
        time.sleep(1000)
open(os.path.join(root, "output", "model"), "w").close()
"""
AGAIN = {
    "pattern": "output/cat-*-state/state.json",
    "argv": ["--resume=<F>", "--index=<P>"],
    "path": "<P>",
    "folder": "<F>",
}


def trainer(job: Bench, **more: Any) -> dict[str, Any]:
    argv = [sys.executable, "-S", "-c", TRAINER, str(job.root)]
    return {"name": "train", "argv": argv, "training": True, "expect": ["output/model"], "tries": 2, **more}


def test_a_training_killed_outright_goes_on_from_its_latest_whole_state(job: Bench) -> None:
    job.plan(trainer(job, again=AGAIN))
    job.start()
    until(lambda: "half way" in job.text())
    kill(job.until_running()["pid"])
    seen = job.until_finished()
    assert seen["finished"]["result"] == "done"
    said = log_bytes(job.status({}), "0.2").decode()
    assert said == "trackside: goes on from output/cat-000003-state/state.json\nbegins after step 3\n"


def test_a_training_goes_on_after_a_restart_of_its_machine(job: Bench) -> None:
    job.plan(trainer(job, again=AGAIN))
    job.environment["TRACKSIDE_BOOT_ID"] = "first"
    job.start()
    until(lambda: "half way" in job.text())
    for process in (job.supervisor_pid(), job.shim_pid(), job.until_running()["pid"]):
        kill(process)
    job.environment["TRACKSIDE_BOOT_ID"] = "second"
    job.start()
    assert job.until_finished()["finished"]["result"] == "done"
    assert "begins after step 3\n" in job.text()


def test_a_further_try_without_anything_to_go_on_from_gets_its_own_arguments_alone(job: Bench) -> None:
    script = 'echo "$@"; test -e ../tried && exit 0; touch ../tried ../output/empty.json; exit 1'
    again = {"pattern": "output/*.json", "argv": ["--resume=<P>"], "path": "<P>", "folder": "<F>"}
    plan = {"name": "train", "argv": ["/bin/sh", "-c", script, "sh", "first"], "tries": 2, "again": again}
    job.plan(plan)
    job.start()
    assert job.until_finished()["finished"]["result"] == "done"
    assert job.text() == "first\nfirst\n"


def test_a_name_that_looks_like_a_mark_stays_as_it_is(job: Bench) -> None:
    script = 'echo "$@"; test -e ../tried && exit 0; touch ../tried; mkdir "$0"; echo x >"$0/<P>"; exit 1'
    again = {"pattern": "output/*/*", "argv": ["<P>", "in <F>"], "path": "<P>", "folder": "<F>"}
    job.plan({"name": "train", "argv": ["/bin/sh", "-c", script, "../output/<F>"], "tries": 2, "again": again})
    job.start()
    job.until_finished()
    assert job.text().splitlines()[-1] == f"{job.root}/output/<F>/<P> in {job.root}/output/<F>"


def raising(exception: str) -> list[str]:
    return [sys.executable, "-S", "-c", f"import sys; print('tried', flush=True); raise {exception}"]


@pytest.mark.parametrize(
    ("exception", "tries", "error"),
    [
        ("AssertionError('steps must be more than 0')", 1, "AssertionError: steps must be more than 0"),
        ("KeyError('rank')", 1, "KeyError: 'rank'"),
        ("ConnectionResetError('by peer')", 2, "ConnectionResetError: by peer"),
        ("RuntimeError('nobody knows')", 2, "RuntimeError: nobody knows"),
    ],
)
def test_an_error_that_cannot_pass_is_tried_once(job: Bench, exception: str, tries: int, error: str) -> None:
    job.plan({"name": "train", "argv": raising(exception), "tries": 2, "backoff_seconds": [0.05]}, step("never", ":"))
    job.start()
    seen = job.until_finished()
    assert (seen["finished"]["result"], seen["finished"]["step"], seen["finished"]["exit_code"]) == (
        "failed",
        "train",
        1,
    )
    last = seen["steps"][0]
    assert (last["state"], last["try"], last["failure"]) == ("failed", tries, "exit")
    assert (last["error"], last["cannot_pass"]) == (error, tries == 1)
    assert job.text().count("tried") == tries


def test_what_was_judged_once_stays_so_whatever_becomes_of_the_log(job: Bench) -> None:
    job.plan({"name": "train", "argv": raising("KeyError('rank')"), "tries": 2})
    job.start()
    job.until_finished()
    folder = job.own / "steps" / "0.1"
    assert job.verdict_on_disk()["cannot_pass"] is True
    (folder / "log").write_text("nothing\n")
    assert job.start()["finished"]["result"] == "failed"
    assert job.status()["steps"][0]["error"] == "KeyError: 'rank'"


def test_a_verdict_of_an_older_trackside_is_read(job: Bench) -> None:
    job.plan({"name": "train", "argv": raising("KeyError('rank')"), "tries": 2, "backoff_seconds": [3600]})
    job.start()
    job.until_finished()
    old = {key: value for key, value in job.verdict_on_disk().items() if key not in ("error", "cannot_pass")}
    (job.own / "steps" / "0.1" / "verdict.json").write_text(json.dumps(old))
    seen = job.status()["steps"][0]
    assert (seen["state"], seen["failure"], seen["error"], seen["cannot_pass"]) == ("pending", "exit", None, False)


def test_a_step_that_may_fail_is_given_up_after_an_error_that_cannot_pass(job: Bench) -> None:
    plan = {"name": "samples", "argv": raising("KeyError('rank')"), "tries": 3, "optional": True}
    job.plan({**plan, "backoff_seconds": [3600]}, step("after", "echo after"))
    job.start()
    seen = job.until_finished()
    assert (seen["finished"]["result"], seen["steps"][0]["state"], seen["steps"][0]["try"]) == ("done", "failed", 1)


def test_a_program_that_is_not_there_is_named(job: Bench) -> None:
    job.plan({"name": "train", "argv": ["no-such-trainer"]})
    job.start()
    assert job.until_finished()["steps"][0]["error"].startswith("could not start no-such-trainer: ")
