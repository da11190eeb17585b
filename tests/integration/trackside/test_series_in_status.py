"""The rows that a training writes reach home once, beside its log."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from typing import Any

from tests.support.machines.trackside_bench import Bench, seen_so_far
from tests.support.waiting import until

WRITE = """
import os, sqlite3, sys, time
from trackside.metrics.schema import complete_schema
database = sqlite3.connect(os.environ["TRACKSIDE_DATABASE"], isolation_level=None)
database.execute("PRAGMA journal_mode=WAL")
complete_schema(database)
def steps(first, last):
    rows = [(os.environ["TRACKSIDE_JOB"], step, time.time(), 0.5) for step in range(first, last)]
    database.execute("BEGIN")
    database.executemany("INSERT INTO StepMetric (job_id, step, timestamp, loss) VALUES (?, ?, ?, ?)", rows)
    database.execute("COMMIT")
"""


def training(script: str) -> dict[str, Any]:
    return {"name": "train", "argv": [sys.executable, "-c", WRITE + script], "training": True}


def steps_in(answer: dict[str, Any]) -> list[int]:
    return [step for entry in answer["series"] if entry["table"] == "StepMetric" for step in entry["columns"]["step"]]


def test_only_new_rows_are_sent(job: Bench) -> None:
    wait = "\nwhile not os.path.exists('../go'): time.sleep(0.02)\n"
    job.plan(training("steps(0, 10)" + wait + "steps(10, 15)"))
    job.start()
    first = until(lambda: steps_in(seen := job.status()) and seen)
    assert steps_in(first) == list(range(10))
    since = seen_so_far({}, first)
    assert steps_in(job.status(since)) == []
    (job.root / "go").touch()
    job.until_finished()
    assert steps_in(job.status(since)) == list(range(10, 15))


def test_many_rows_and_a_long_log_come_in_bounded_answers_and_completely(job: Bench) -> None:
    job.plan(training("steps(0, 3000)\nfor n in range(20_000): print('line', n)"))
    job.start()
    job.until_finished()
    whole = job.text().encode()
    since: dict[str, Any] = {}
    steps: list[int] = []
    log = b""
    while True:
        raw = job.run("status", "--since", json.dumps(since), "--max-bytes", "60000").stdout
        assert len(raw) <= 60_000
        answer = json.loads(raw)
        pieces = [base64.b64decode(entry["data"]) for entry in answer["log"]]
        steps += steps_in(answer)
        assert pieces or log == whole, "rows never hold the log up"
        log += b"".join(pieces)
        since = seen_so_far(since, answer)
        if not answer["more"]:
            break
    assert steps == list(range(3000))
    assert log == whole


def test_follow_sends_every_row_once_until_the_end(job: Bench) -> None:
    job.plan(training("for n in range(60): steps(n * 10, n * 10 + 10); print(n); time.sleep(0.05)"))
    follower = job.popen("follow", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert follower.stdout is not None
    assert follower.stdin is not None
    began = time.monotonic()
    job.start()
    steps: list[int] = []
    with_rows = 0
    for line in follower.stdout:
        answer = json.loads(line)
        steps += steps_in(answer)
        with_rows += bool(steps_in(answer))
        if answer["finished"] and not answer["more"]:
            break
    follower.stdin.close()
    follower.stdout.close()
    follower.wait()
    assert steps == list(range(600))
    # When it begins, every two seconds, and when it ends.
    assert with_rows <= 2 + (time.monotonic() - began) / 2, "rows are not read at every line of the log"


def test_gpus_and_memory_come_from_the_newest_sample_if_it_is_fresh(job: Bench) -> None:
    job.plan(training(""))
    job.own.mkdir()
    gpu = [0, "H200", 1.5, 140.0, 33.4, None, None, None, None, None]
    sample = {"memory": [8.0, 4.0, 2.0, 1.0], "gpus": [gpu], "processes": [], "io": []}
    newest = job.own / "newest_sample.json"
    newest.write_text(json.dumps({"timestamp": job.status()["wall"], **sample}))
    seen = job.status()
    assert seen["memory"] == {"total_bytes": 8 << 30, "available_bytes": 2 << 30, "swap_used_bytes": 1 << 30}
    expected = {"index": 0, "name": "H200", "memory_used_mib": 1536, "memory_total_mib": 143360}
    assert seen["gpu"] == [{**expected, "utilization_percent": 33}]
    newest.write_text(json.dumps({"timestamp": seen["wall"] - 600, **sample}))
    assert job.status()["memory"] != seen["memory"]
    newest.write_text('{"timestamp": "x"}')
    assert job.status()["memory"] is not None
