"""The status tells what is new, within its bounds; follow tells it as it comes."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from typing import Any

from tests.support.machines.trackside_bench import Bench, log_bytes, seen_so_far, step
from tests.support.waiting import until


def test_only_new_bytes_are_sent(job: Bench) -> None:
    job.plan(step("train", "echo one; while [ ! -e ../go ]; do sleep 0.05; done; echo two"))
    job.start()
    first = until(lambda: (seen := job.status())["log"] and seen)
    assert log_bytes(first) == b"one\n"
    since = seen_so_far({}, first)
    assert job.status(since)["log"] == []
    (job.root / "go").touch()
    job.until_finished()
    second = job.status(since)
    assert (log_bytes(second), second["log"][0]["start"]) == (b"two\n", 4)


def test_a_log_that_was_truncated_is_sent_from_its_start(job: Bench) -> None:
    job.plan(step("train", "echo a long first line; while [ ! -e ../go ]; do sleep 0.05; done; echo new"))
    job.start()
    first = until(lambda: (seen := job.status())["log"] and seen)
    os.truncate(job.own / "steps" / "0.1" / "log", 0)
    (job.root / "go").touch()
    job.until_finished()
    second = job.status(seen_so_far({}, first))
    assert (second["log"][0]["restarted"], second["log"][0]["start"], log_bytes(second)) == (True, 0, b"new\n")


def test_a_long_log_comes_in_bounded_answers_and_completely(job: Bench) -> None:
    job.plan(step("a", "seq 1 60000"), step("b", "seq 1 2000"), step("c", "echo end"))
    job.start()
    job.until_finished()
    since: dict[str, Any] = {}
    got: dict[str, bytes] = {}
    answers = 0
    while True:
        raw = job.run("status", "--since", json.dumps(since), "--max-bytes", "100000").stdout
        assert len(raw) <= 100_000
        answer = json.loads(raw)
        for entry in answer["log"]:
            got[entry["stream"]] = got.get(entry["stream"], b"") + base64.b64decode(entry["data"])
        since = seen_so_far(since, answer)
        answers += 1
        if not answer["more"]:
            break
    assert answers > 3
    whole = b"".join(got[stream] for stream in ("0.1", "1.1", "2.1"))
    assert whole.decode() == job.text()


def test_even_a_hopeless_limit_gets_on(job: Bench) -> None:
    job.plan(step("a", "seq 1 2000"))
    job.start()
    job.until_finished()
    first = job.status({}, "--max-bytes", "10")
    second = job.status(seen_so_far({}, first), "--max-bytes", "10")
    assert first["more"]
    assert second["log"][0]["start"] == first["log"][0]["end"] > 0


def test_redraws_are_thinned_and_offsets_stay_raw(job: Bench) -> None:
    bars = "import sys\nfor n in range(101): sys.stdout.write('\\rtrain: %d%%| %d/100' % (n, n))\nprint()"
    job.plan({"name": "train", "argv": [sys.executable, "-c", bars]})
    job.start()
    job.until_finished()
    entry = job.status()["log"][0]
    assert base64.b64decode(entry["data"]) == b"\rtrain: 0%| 0/100\rtrain: 100%| 100/100\n"
    assert entry["end"] == (job.own / "steps" / "0.1" / "log").stat().st_size


def test_the_end_of_a_log_is_dated(job: Bench) -> None:
    job.plan(step("train", "echo one"))
    job.start()
    job.until_finished()
    seen = until(lambda: (looked := job.status())["log"][0]["times"] and looked, "the supervisor's last mark")
    assert seen["log"][0]["times"] == [[4, round(seen["steps"][0]["ended_at"], 3)]]


def test_outputs_are_listed_and_too_many_are_cut_newest_first(job: Bench) -> None:
    outputs = [{"pattern": "output/best*", "kind": "checkpoint"}, {"pattern": "output/**/*", "kind": "sample"}]
    job.plan(step("train", "true"), outputs=outputs)
    folder = job.root / "output" / "samples"
    folder.mkdir(parents=True)
    for number in range(300):
        path = folder / f"{number:03}.png"
        path.touch()
        os.utime(path, (number, number))
    (job.root / "output" / "best.safetensors").write_bytes(b"model")
    seen = job.status()
    assert len(seen["outputs"]) == 301
    best = seen["outputs"][0]
    assert (best["path"], best["kind"], best["size"]) == ("output/best.safetensors", "checkpoint", 5)
    cut = job.status({}, "--max-bytes", "20000")
    assert cut["outputs_left_out"] == 301 - len(cut["outputs"]) > 0
    assert [output["path"] for output in cut["outputs"]][:1] == ["output/best.safetensors"]
    assert "output/samples/299.png" in [output["path"] for output in cut["outputs"]]


def test_status_needs_no_start_and_leaves_no_trace(job: Bench) -> None:
    job.plan(step("train", "true", secrets=["TOKEN"]))
    seen = job.status()
    assert (seen["started"], seen["supervisor"]["alive"], seen["finished"]) == (False, False, None)
    assert seen["needs_secrets"] == ["TOKEN"]
    assert not job.own.exists()


def test_logs_are_one_text_and_have_a_tail(job: Bench) -> None:
    job.plan(step("a", "seq 1 5"), step("b", "printf 'x\ny'"), step("c", "seq 6 9"))
    job.start()
    job.until_finished()
    assert job.text() == "1\n2\n3\n4\n5\nx\ny6\n7\n8\n9\n"
    assert job.run("logs", "--tail", "5").stdout == b"x\ny6\n7\n8\n9\n"
    assert job.run("logs", "--tail", "0").stdout == b""
    assert job.run("logs", "--step", "1").stdout == b"x\ny"
    assert job.run("logs", "--step", "0", "--tail", "2").stdout == b"4\n5\n"
    assert job.run("logs", "--tail", "99").stdout.decode() == job.text()


class Follower:
    """`follow` running beside a test."""

    def __init__(self, job: Bench) -> None:
        self.call = job.popen("follow", stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def next(self) -> Any:
        assert self.call.stdout is not None
        return json.loads(self.call.stdout.readline())

    def until_text(self, wanted: bytes, got: bytes = b"") -> bytes:
        while wanted not in got:
            got += log_bytes(self.next())
        return got

    def close(self) -> int:
        assert self.call.stdin is not None
        assert self.call.stdout is not None
        self.call.stdin.close()
        self.call.stdout.read()
        self.call.stdout.close()
        return self.call.wait()


def test_follow_tells_each_line_before_the_next_is_written(job: Bench) -> None:
    job.plan(step("train", 'for n in 1 2 3; do echo "line $n"; while [ ! -e ../go$n ]; do sleep 0.02; done; done'))
    follower = Follower(job)
    assert follower.next()["started"] is False
    job.start()
    got = b""
    for number in (1, 2, 3):
        got = follower.until_text(b"line %d\n" % number, got)
        assert got.count(b"line") == number
        (job.root / f"go{number}").touch()
    while (seen := follower.next())["finished"] is None:
        pass
    assert seen["finished"]["result"] == "done"
    assert follower.close() == 0


def test_follow_outlives_the_archive_that_it_was_started_from(job_with_python: Bench) -> None:
    """As home leaves it that has newer code, while somebody still follows with the older one."""
    job = job_with_python
    job.plan(step("train", "until [ -e ../go ]; do sleep 0.1; done; echo gone on"))
    job.start()
    job.until_running()  # a supervisor that is just starting would read half of each archive
    follower = Follower(job)
    assert follower.next()["started"]
    newer = job.root / "newer.pyz"
    newer.write_bytes(b"#!/usr/bin/env python3\n" + (job.root / "trackside.pyz").read_bytes())
    newer.replace(job.root / "trackside.pyz")
    (job.root / "go").touch()
    follower.until_text(b"gone on\n")
    assert follower.close() == 0


def test_follow_brings_a_long_log_in_order(job: Bench) -> None:
    job.plan(step("train", "seq 1 300000"))
    job.start()
    job.until_finished()
    follower = Follower(job)
    got = follower.until_text(b"\n300000\n")
    assert got == (job.own / "steps" / "0.1" / "log").read_bytes()
    follower.close()


def test_follow_tells_of_new_outputs_and_ends_when_nobody_listens(job: Bench) -> None:
    job.plan(step("train", "exec sleep 1000"), outputs=[{"pattern": "output/*", "kind": "checkpoint"}])
    job.start()
    job.until_running()
    follower = Follower(job)
    assert follower.next()["outputs"] == []
    (job.root / "output" / "a.safetensors").touch()
    while not follower.next()["outputs"]:
        pass
    assert follower.call.stdout is not None
    assert follower.call.stdin is not None
    follower.call.stdout.close()
    (job.root / "output" / "b.safetensors").touch()
    assert follower.call.wait(timeout=150) == 0
    follower.call.stdin.close()
