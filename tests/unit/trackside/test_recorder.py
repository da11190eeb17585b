"""What a recorder writes, look by look; the time is the test's."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import until
from trackside.collector import Run
from trackside.recorder.recorder import RecordedTry, Recorder, TryEnd

BEGIN = 1_700_000_000.0
OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB\n"


class Bench:
    """A try's log and database, and a recorder that looks at the given moments."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.log.touch()
        self.database = folder / "run.db"
        self.notes: list[str] = []
        self.now = 0.0  # for readings that may take only a share of a core
        self.recorder = self.another(0.0)

    def another(self, moment: float) -> Recorder:
        recorded = RecordedTry(
            job="j",
            database=str(self.database),
            folder=str(self.folder),
            log=str(self.log),
            stream="0.1",
            started=BEGIN,
            interval_seconds=5.0,
            per_process=True,
            newest_sample=str(self.folder / "newest.json"),
        )
        return Recorder(recorded, moment=moment, note=self.notes.append, now=lambda: self.now)

    def look(self, *moments: float) -> None:
        for moment in moments:
            self.recorder.look(wall=BEGIN + moment, moment=moment, pid=os.getpid())

    def finish(
        self, moment: float, *, exit_code: int | None = 0, signal: int | None = None, out_of_memory: bool = False
    ) -> None:
        end = TryEnd(BEGIN + moment, exit_code, signal, out_of_memory)
        self.recorder.finish(end, wall=BEGIN + moment, moment=moment)

    def write(self, text: str) -> None:
        with self.log.open("a") as file:
            file.write(text)

    def rows(self, query: str) -> list[Any]:
        connection = sqlite3.connect(self.database)
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()

    def samples(self) -> int:
        return len(self.rows("SELECT id FROM MetricsSample"))

    def times_of(self, kind: str) -> list[float]:
        found = self.rows(f"SELECT timestamp FROM TrainingEvent WHERE event_type = '{kind}' ORDER BY timestamp")
        return [timestamp - BEGIN for (timestamp,) in found]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_the_first_sample_is_written_at_once_and_the_others_in_tens(bench: Bench) -> None:
    bench.look(0.0)
    assert bench.samples() == 1
    bench.look(*range(1, 50))
    assert bench.samples() == 1, "nine more wait in the journal"
    bench.look(50.0)
    assert bench.samples() == 11
    bench.look(55.0)
    bench.finish(56.0)
    assert bench.samples() == 13, "the end brings the rest, and a last one"


def test_the_newest_sample_is_there_for_others(bench: Bench) -> None:
    bench.look(0.0, 5.0)
    assert json.loads((bench.folder / "newest.json").read_text())["timestamp"] == BEGIN + 5.0


def test_lines_of_one_lack_of_memory_are_one_event_and_a_later_one_is_another(bench: Bench) -> None:
    bench.look(0.0)
    for moment in (1.0, 4.0, 9.0, 60.0):
        bench.write(OUT_OF_MEMORY)
        bench.look(moment)
    bench.look(63.0)
    assert bench.times_of("oom_error") == [1.0, 60.0]
    snapshots = bench.rows(
        "SELECT s.timestamp FROM TrainingEvent e JOIN MetricsSample s ON s.id = e.memory_snapshot_id"
    )
    assert [timestamp - BEGIN for (timestamp,) in snapshots] == [1.0, 60.0]


def test_an_event_of_the_training_itself_is_not_repeated(bench: Bench) -> None:
    with Run("j", str(bench.database), sample_seconds=0) as run:
        run.event("oom_error", at=BEGIN + 9.0)
    bench.look(0.0)
    bench.write(OUT_OF_MEMORY)
    bench.look(10.0, 13.0)
    assert bench.times_of("oom_error") == [9.0]


@pytest.mark.parametrize(("exit_code", "events"), [(137, [7.0]), (0, [])])
def test_a_kill_for_lack_of_memory_is_an_event_unless_the_training_survived_it(
    bench: Bench, exit_code: int, events: list[float]
) -> None:
    bench.look(0.0)
    bench.finish(7.0, exit_code=exit_code, out_of_memory=True)
    assert bench.times_of("oom_error") == events


def test_a_new_recorder_does_not_repeat_what_one_before_it_found(bench: Bench) -> None:
    bench.write(OUT_OF_MEMORY)
    bench.look(0.0, 3.0)
    bench.recorder.close()
    bench.recorder = bench.another(100.0)
    bench.look(100.0, 103.0)
    assert bench.times_of("oom_error") == [0.0]
    bench.write(OUT_OF_MEMORY)
    bench.look(104.0, 107.0)
    assert bench.times_of("oom_error") == [0.0, 104.0]


def test_a_lack_of_memory_at_the_very_end_is_found(bench: Bench) -> None:
    bench.look(0.0)
    bench.write(OUT_OF_MEMORY.rstrip("\n"))
    bench.finish(1.0, exit_code=1)
    assert bench.times_of("oom_error") == [1.0]
    assert bench.times_of("training_end") == [1.0]


def test_a_killed_training_has_no_end_of_its_own(bench: Bench) -> None:
    bench.look(0.0)
    bench.finish(1.0, exit_code=None, signal=9)
    assert (bench.times_of("training_start"), bench.times_of("training_end")) == ([0.0], [])
    found = dict(bench.rows("SELECT key, value FROM RunInfo"))
    assert (found["exit_code"], found["exit_signal"]) == ("137", "9")


def test_a_database_that_cannot_be_opened_is_noted_once_and_written_when_it_can(bench: Bench) -> None:
    bench.database.mkdir()
    bench.look(0.0, *range(5, 50, 5))
    assert len(bench.notes) == 1
    bench.database.rmdir()
    bench.look(50.0)
    assert bench.samples() == 11
    bench.finish(51.0)
    assert not (bench.folder / "run.db.journals").exists()


def _sleeps(pid: int) -> bool:
    """Whether it has become `sleep` and rests: on a busy computer it is some time on its way there."""
    folder = Path(f"/proc/{pid}")
    state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
    return state == "S" and (folder / "cmdline").read_bytes().startswith(b"sleep")


def test_samples_of_a_training_that_sleeps_are_written_sooner(bench: Bench) -> None:
    with subprocess.Popen(["sleep", "1000"]) as training:
        moments = iter(range(0, 1000, 5))
        until(lambda: _sleeps(training.pid), "the training sleeps")

        def look() -> bool:
            moment = bench.now = next(moments)
            bench.recorder.look(wall=BEGIN + moment, moment=moment, pid=training.pid)
            return bench.samples() > 1

        until(look, "samples beside the first")
        training.kill()
    assert 3 <= bench.samples() < 10
    assert bench.rows("SELECT DISTINCT state FROM ProcessSample WHERE state IS NOT NULL") == [("asleep",)]
