"""A recorder runs beside each training: what it records, and that nothing of it can disturb the training."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.killing import kill
from tests.support.machines.trackside_bench import Bench, bench, is_alive, seen_so_far, step, until_dead
from tests.support.waiting import until

OFTEN = {"interval_seconds": 1}
WAIT = "while [ ! -e ../go ]; do sleep 0.05; done"


def python(script: str, **more: Any) -> dict[str, Any]:
    return {"name": "train", "argv": [sys.executable, "-c", script], "training": True, **more}


def rows(job: Bench, query: str) -> list[Any]:
    connection = sqlite3.connect(job.root / "logs" / "aitk_db.db")
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def events(job: Bench) -> list[str]:
    return [kind for (kind,) in rows(job, "SELECT event_type FROM TrainingEvent ORDER BY timestamp")]


def info(job: Bench) -> dict[str, str | None]:
    return dict(rows(job, "SELECT key, value FROM RunInfo"))


def finished(job: Bench) -> Any:
    """The first status that carries everything: as home asks, with what it has read."""
    job.start()
    job.until_finished()
    return until(lambda: not (seen := job.status({}))["more"] and seen, "all rows")


def test_a_training_that_knows_nothing_of_it_is_recorded(job: Bench) -> None:
    job.plan(step("train", WAIT, training=True), monitoring=OFTEN)
    job.start()
    recorder = job.recorder_pid()
    assert os.getpriority(os.PRIO_PROCESS, recorder) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)
    assert os.getsid(recorder) == recorder
    until(lambda: job.status({})["series"], "the first sample, which does not wait for others")
    (job.root / "go").touch()
    finished(job)
    assert events(job) == ["training_start", "training_end"]
    assert info(job)["exit_code"] == "0"
    assert rows(job, "SELECT count(*) FROM MetricsSample WHERE total_memory_gb > 0")[0][0] >= 2
    assert rows(job, "PRAGMA integrity_check") == [("ok",)]
    (snapshot,) = rows(job, "SELECT memory_snapshot_id FROM TrainingEvent WHERE event_type = 'training_end'")[0]
    assert rows(job, f"SELECT total_memory_gb > 0 FROM MetricsSample WHERE id = {snapshot}") == [(1,)]
    until_dead(recorder)
    assert not list((job.root / "logs").glob("*.journals"))
    newest = json.loads((job.own / "newest_sample.json").read_text())
    assert newest["memory"][0] > 0


def test_the_training_s_own_events_are_not_repeated(job: Bench) -> None:
    job.plan(python("from trackside import Run\nwith Run() as run: run.step(1, loss=0.5)"), monitoring=OFTEN)
    finished(job)
    assert events(job) == ["training_start", "training_end"]
    assert rows(job, "SELECT step, loss FROM StepMetric") == [(1, 0.5)]


OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity"


def test_a_lack_of_memory_in_the_log_is_an_event_with_a_sample(job: Bench) -> None:
    script = f"echo a BEDROOM; for n in 1 2 3; do echo '{OUT_OF_MEMORY}'; done; exit 1"
    job.plan(step("train", script, training=True), monitoring=OFTEN)
    finished(job)
    assert sorted(events(job)) == ["oom_error", "training_end", "training_start"]
    ((details, snapshot),) = rows(
        job, "SELECT details, memory_snapshot_id FROM TrainingEvent WHERE event_type = 'oom_error'"
    )
    assert json.loads(details)["message"] == OUT_OF_MEMORY
    assert rows(job, f"SELECT count(*) FROM MetricsSample WHERE id = {snapshot}") == [(1,)]
    assert info(job)["exit_code"] == "1"


def test_a_lack_of_memory_that_the_training_reported_is_one_event(job: Bench) -> None:
    script = "from trackside import Run\nwith Run() as run: raise MemoryError('CUDA out of memory. Tried to allocate')"
    job.plan(python(script), monitoring=OFTEN)
    finished(job)
    assert sorted(events(job)) == ["oom_error", "training_end", "training_start"]
    assert "source" not in rows(job, "SELECT details FROM TrainingEvent WHERE event_type = 'oom_error'")[0][0]


def test_a_killed_training_has_its_signal_and_no_orderly_end(job: Bench) -> None:
    job.plan(python("from trackside import Run\nrun = Run(); run.event('training_start'); run.step(7)\n"
                    "import os; os.kill(os.getpid(), 9)"), monitoring=OFTEN)  # fmt: skip
    finished(job)
    assert events(job) == ["training_start"]
    assert {key: info(job)[key] for key in ("exit_code", "exit_signal")} == {"exit_code": "137", "exit_signal": "9"}
    assert rows(job, "SELECT step FROM StepMetric") == [(7,)]


def test_a_second_try_is_recorded_in_the_same_file_with_its_own_end(job: Bench) -> None:
    script = "test -e ../second && exit 0; touch ../second; kill -9 $$"
    job.plan(step("train", script, training=True, tries=2), monitoring=OFTEN)
    finished(job)
    assert events(job) == ["training_start", "training_start", "training_end"]
    assert (info(job)["exit_code"], info(job)["exit_signal"]) == ("0", None)


@pytest.mark.parametrize(
    ("training", "monitoring"), [(False, OFTEN), (True, {"enabled": False})], ids=["another step", "disabled"]
)
def test_a_step_that_is_not_monitored_has_no_recorder_and_no_file(
    job: Bench, training: bool, monitoring: dict[str, Any]
) -> None:
    job.plan(step("train", "sleep 0.3", training=training), monitoring=monitoring)
    assert finished(job)["series"] == []
    assert not (job.own / "recorder.lock").exists()
    assert list((job.root / "logs").iterdir()) == []


def test_a_recorder_that_was_killed_loses_none_of_its_samples(job: Bench) -> None:
    job.plan(step("train", WAIT, training=True), monitoring=OFTEN)
    job.start()
    recorder = job.recorder_pid()
    newest = job.own / "newest_sample.json"
    until(newest.exists, "a sample")
    first = newest.read_text()
    until(lambda: newest.read_text() != first, "a sample that is not folded yet")
    last = newest.read_text()
    kill(recorder)
    until_dead(recorder)
    stamp = json.loads(last)["timestamp"]
    assert any(
        stamp in entry["columns"]["timestamp"]
        for entry in job.status({})["series"]
        if entry["table"] == "MetricsSample"
    )


def test_a_recorder_that_hangs_is_killed_and_no_row_is_lost(job: Bench) -> None:
    script = "from trackside import Run\nimport time, os\nrun = Run()\nfor n in range(10): run.step(n)\n"
    job.plan(python(script + "while not os.path.exists('../go'): time.sleep(0.02)\nos.kill(os.getpid(), 9)"))
    job.start()
    recorder = job.recorder_pid()
    os.kill(recorder, signal.SIGSTOP)
    (job.root / "go").touch()
    job.until_finished()
    until_dead(recorder)
    seen = finished(job)
    (steps,) = (entry["columns"]["step"] for entry in seen["series"] if entry["table"] == "StepMetric")
    assert steps == list(range(10))


def test_a_new_supervisor_does_not_start_a_second_recorder(job: Bench) -> None:
    job.plan(step("train", WAIT, training=True), monitoring=OFTEN)
    job.start()
    recorder = job.recorder_pid()
    job.kill_supervisor()
    job.start()
    until(lambda: job.state_on_disk().get("supervisor") == job.supervisor_pid())
    beat, state = job.own / "latest.json", job.own / "state.json"
    until(lambda: beat.exists() and beat.stat().st_mtime > state.stat().st_mtime, "its turns")
    assert job.recorder_pid() == recorder
    assert is_alive(recorder)
    (job.root / "go").touch()
    finished(job)
    until_dead(recorder)
    assert events(job) == ["training_start", "training_end"]


ALL = ("training", "recorder", "supervisor")
TRAIN = """
import os, time
from trackside import Run
done = os.open("../done", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
with Run() as run:
    first = os.path.getsize("../done")
    for number in range(first, 1000):
        while os.path.exists("../pause_at_%d" % number):
            time.sleep(0.01)
        run.step(number, loss=1.0)
        os.write(done, b".")
"""


@pytest.mark.parametrize(
    ("victims", "after"),
    [(("training",), 0), (("training",), 500), (("recorder",), 500), (("supervisor",), 500), (ALL, 0), (ALL, 500)],
)
def test_whatever_is_killed_every_step_reaches_home_once(job: Bench, victims: tuple[str, ...], after: int) -> None:
    """Home reads all the while; the training goes on where it was killed, so that 1,000 steps exist in the end."""
    job.plan(python(TRAIN, tries=2), monitoring=OFTEN)
    pause, done = job.root / f"pause_at_{after}", job.root / "done"
    pause.touch()
    job.start()
    running, recorder = job.until_running(), job.recorder_pid()
    until(lambda: done.exists() and done.stat().st_size == after, "some steps")
    pids = {"training": running["pid"], "recorder": recorder, "supervisor": job.supervisor_pid()}
    for victim in victims:
        kill(pids[victim])
    for victim in victims:
        until_dead(pids[victim])
    pause.unlink()
    since: dict[str, Any] = {}
    steps: list[int] = []
    while True:
        seen = job.start() and job.status(since)
        since = seen_so_far(since, seen)
        steps += [n for e in seen["series"] if e["table"] == "StepMetric" for n in e["columns"]["step"]]
        if seen["finished"] and not seen["more"]:
            break
    assert seen["finished"]["result"] == "done"
    # The step at which it was killed may have been recorded before it was counted, and is done again.
    assert sorted(set(steps)) == list(range(1000))
    assert len(steps) <= 1001
    assert rows(job, "PRAGMA integrity_check") == [("ok",)]


TRAIN_AND_EXIT = """
from trackside import Run
with Run() as run:
    for number in range(100): run.step(number)
raise SystemExit(3)
"""


def test_a_logs_folder_that_cannot_be_written_to_changes_nothing_for_the_training(job: Bench) -> None:
    job.plan(python(TRAIN_AND_EXIT), monitoring=OFTEN)
    (job.root / "logs" / "aitk_db.db").mkdir(parents=True)
    (job.root / "logs" / "aitk_db.db.journals").touch()
    seen = finished(job)
    assert (seen["steps"][0]["exit_code"], seen["series"]) == (3, [])
    assert "Traceback" not in (job.own / "supervisor.log").read_text() + job.text()


FILL = """
with open("../output/big", "wb", buffering=0) as file:
    try:
        while file.write(bytes(4096)):
            pass
    except OSError:
        pass
"""


def test_a_disk_that_a_training_fills_changes_nothing_for_it(small_disk: Path, pyz: Path) -> None:
    with bench(small_disk / "job", pyz=pyz, is_forked=True) as job:
        job.plan(python(FILL + TRAIN_AND_EXIT), monitoring=OFTEN)
        job.start()
        seen = job.until_finished()
        assert (seen["steps"][0]["exit_code"], seen["steps"][0]["exit_known"]) == (3, True)
