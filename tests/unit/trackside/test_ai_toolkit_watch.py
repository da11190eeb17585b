"""A training of ai-toolkit is recorded from its two databases, written here as it writes them."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.jobs.recorded_runs import events_of, kinds_and_steps, samples_of, steps_of, values_of
from trackside.collector import Run
from trackside.integrations.ai_toolkit import Settings, Watch, main, read_config, record

NOON = 1_794_000_000.0


class Trainer:
    """Writes both databases at the times that a test names, and lets the watch look right afterwards."""

    def __init__(self, folder: Path, **process: Any) -> None:
        self.folder, self.recorded = folder, folder / "recorded.db"
        self.database, self.losses = folder / "aitk_db.db", folder / "loss_log.db"
        with closing(sqlite3.connect(self.database)) as jobs, jobs:
            jobs.execute("CREATE TABLE Job (id TEXT PRIMARY KEY, status TEXT, info TEXT, step INTEGER)")
            jobs.execute("INSERT INTO Job VALUES ('other', 'stopped', 'Job stopped', 9), ('mine', 'queued', '', 0)")
        self._logger = sqlite3.connect(self.losses)  # stays open, as ai-toolkit's
        self._logger.execute("PRAGMA journal_mode=WAL")
        self._logger.execute("CREATE TABLE steps (step INTEGER PRIMARY KEY, wall_time REAL NOT NULL)")
        self._logger.execute("CREATE TABLE metrics (step INTEGER, key TEXT, value_real REAL, value_text TEXT)")
        for path in (self.database, self.losses):
            set_time(path, NOON - 60)
        self.settings = Settings.of({"config": {"process": [{"train": {"batch_size": 2, "steps": 6}, **process}]}})
        self.run = Run("a-job", str(self.recorded), sample_seconds=0)
        self.watch = Watch(self.run, self.database, self.losses, self.settings, job_id="mine")

    def says(self, at: float, info: str, *, step: int = 0, status: str = "running") -> None:
        with closing(sqlite3.connect(self.database)) as jobs, jobs:
            jobs.execute("UPDATE Job SET status = ?, info = ?, step = ? WHERE id = 'mine'", (status, info, step))
        self._look(self.database, at)

    def logs(self, at: float, number: int, **values: float | None) -> None:
        with self._logger:
            self._logger.execute("INSERT INTO steps VALUES (?, ?)", (number, NOON + at))
            rows = [(number, key.replace("__", "/"), value) for key, value in values.items()]
            self._logger.executemany("INSERT INTO metrics (step, key, value_real) VALUES (?, ?, ?)", rows)
        self._look(self.losses, at)

    def trains(self, at: float, number: int, **more: float | None) -> None:
        self.logs(at, number, **{"loss__loss": 1.0 / (number + 1), "learning_rate": 1e-4, **more})

    def ends(self) -> None:
        self.run.close()
        self._logger.close()

    def _look(self, written: Path, at: float) -> None:
        set_time(written, NOON + at)
        self.watch.look(NOON + at + 0.06)


def set_time(database: Path, at: float) -> None:
    """Let a database have been written at a time."""
    for path in (database, database.with_name(database.name + "-wal")):
        if path.exists():
            os.utime(path, (at, at))


@pytest.fixture
def trainer(tmp_path: Path) -> Iterator[Trainer]:
    made = Trainer(tmp_path)
    yield made
    made.ends()


def test_each_step_has_its_values_and_its_own_time(trainer: Trainer) -> None:
    trainer.says(0, "Training")
    for number in (1, 2, 3):
        trainer.trains(10.0 + 2.5 * number, number, loss__masked=0.5)
    trainer.ends()
    rows = steps_of(trainer.recorded)
    assert [(row["step"], row["loss"]) for row in rows] == [(2, 1 / 2), (3, 1 / 3), (4, 1 / 4)]
    assert [row["timestamp"] for row in rows] == [NOON + 12.5, NOON + 15.0, NOON + 17.5]
    assert [row["step_time_seconds"] for row in rows] == [None, 2.5, 2.5]
    assert {(row["batch_size"], row["learning_rate"], row["gradient_norm"]) for row in rows} == {(2, 1e-4, None)}
    assert values_of(trainer.recorded, "loss/masked") == {2: 0.5, 3: 0.5, 4: 0.5}


def test_sampling_and_saving_are_events_and_no_step_s_time(trainer: Trainer) -> None:
    trainer.says(0, "Training")
    trainer.trains(10, 1)
    trainer.says(12, "Saving model", step=2)
    trainer.says(15, "Generating images - 0/2", step=2)
    trainer.says(25, "Generating images - 1/2", step=2)
    trainer.says(35, "Training", step=2)
    trainer.trains(36, 2)
    trainer.says(36, "Training", step=3)
    trainer.trains(39, 3)
    trainer.says(41, "Training completed", step=4, status="completed")
    trainer.ends()
    assert kinds_and_steps(trainer.recorded) == [
        *(("training_start", 0), ("save_start", 2), ("save_end", 2)),
        *(("sampling_start", 2), ("sampling_end", 2), ("training_end", 4)),
    ]
    assert [event.at - NOON for event in events_of(trainer.recorded)] == [0, 12, 15, 15, 35, 41]
    assert [row["step_time_seconds"] for row in steps_of(trainer.recorded)] == [None, 3.0, 3.0]


def test_a_save_ends_before_the_row_that_follows_it_even_if_it_is_seen_later(trainer: Trainer) -> None:
    trainer.says(0, "Training")
    trainer.trains(10, 1)
    trainer.says(11, "Saving model", step=2)
    with closing(sqlite3.connect(trainer.database)) as jobs, jobs:
        jobs.execute("UPDATE Job SET info = 'Training', step = 3 WHERE id = 'mine'")
    set_time(trainer.database, NOON + 15.02)  # the step was counted after its row was written
    trainer.trains(15, 2)
    trainer.ends()
    assert [event.at - NOON for event in events_of(trainer.recorded)] == [0, 11, 15]
    assert [row["step_time_seconds"] for row in steps_of(trainer.recorded)] == [None, 1.0]


def test_a_skipped_batch_is_no_step_and_a_loss_of_nan_is_one(trainer: Trainer) -> None:
    """For a batch that did not fit, ai-toolkit logs a learning rate of 0 and no loss."""
    trainer.says(0, "Training")
    trainer.trains(10, 1)
    trainer.logs(11, 2, learning_rate=0.0)
    trainer.trains(12, 3, loss__loss=None)
    trainer.ends()
    assert [(row["step"], row["loss"]) for row in steps_of(trainer.recorded)] == [(2, 0.5), (4, None)]


def test_of_several_steps_one_is_recorded_with_the_time_of_that_one(tmp_path: Path) -> None:
    trainer = Trainer(tmp_path, performance_log_every=3)
    trainer.says(0, "Training")
    for number in range(1, 9):
        trainer.trains(number * number, number)
    trainer.ends()
    assert [(row["step"], row["step_time_seconds"]) for row in steps_of(trainer.recorded)] == [(3, 3), (6, 9), (9, 15)]


def test_where_the_trainer_logs_every_tenth_step_the_time_is_still_that_of_one(trainer: Trainer) -> None:
    trainer.says(0, "Training")
    trainer.trains(10, 10)
    trainer.trains(40, 20)
    trainer.ends()
    assert [row["step_time_seconds"] for row in steps_of(trainer.recorded)] == [None, 3.0]


def test_a_batch_size_that_the_trainer_logs_is_recorded_and_its_change_is_an_event(trainer: Trainer) -> None:
    trainer.says(0, "Training")
    trainer.trains(1, 1, batch_size=2.0, grad_norm=0.25)
    trainer.trains(2, 2, batch_size=4.0, grad_norm=0.5)
    trainer.ends()
    assert [(row["batch_size"], row["gradient_norm"]) for row in steps_of(trainer.recorded)] == [(2, 0.25), (4, 0.5)]
    (event,) = [event for event in events_of(trainer.recorded) if event.kind == "batch_size_adjustment"]
    assert (event.details["step"], event.details["old_batch_size"], event.details["new_batch_size"]) == (3, 2, 4)


@pytest.mark.parametrize("status", ["stopped", "error"])
def test_an_end_before_the_last_step_is_an_end_too(trainer: Trainer, status: str) -> None:
    """ai-toolkit then sets the row's step back to that of its last save."""
    trainer.says(0, "Training")
    trainer.trains(5, 3)
    trainer.says(6, "some error", step=0, status=status)
    trainer.ends()
    last = events_of(trainer.recorded)[-1]
    assert (last.kind, last.details["step"], last.details["status"]) == ("training_end", 4, status)


def test_a_killed_trainer_has_no_end_and_its_last_save_neither(trainer: Trainer) -> None:
    trainer.says(0, "Training")
    trainer.says(5, "Saving model", step=2)
    trainer.watch.look(NOON + 60, is_last=True)
    trainer.ends()
    assert kinds_and_steps(trainer.recorded) == [("training_start", 0), ("save_start", 2)]


def test_nothing_is_read_as_long_as_nothing_is_written(trainer: Trainer) -> None:
    trainer.says(0, "Training")
    with closing(sqlite3.connect(trainer.database)) as jobs, jobs:
        jobs.execute("UPDATE Job SET info = 'Saving model' WHERE id = 'mine'")
    set_time(trainer.database, NOON)
    trainer.watch.look(NOON + 5)
    trainer.ends()
    assert kinds_and_steps(trainer.recorded) == [("training_start", 0)]


def test_databases_that_are_locked_or_missing_are_read_later(tmp_path: Path) -> None:
    trainer = Trainer(tmp_path)
    trainer.watch = Watch(trainer.run, trainer.database, tmp_path / "link.db", trainer.settings, job_id="mine")
    with closing(sqlite3.connect(trainer.database, isolation_level=None)) as locked:
        locked.execute("UPDATE Job SET status = 'running', info = 'Training' WHERE id = 'mine'")
        locked.execute("BEGIN EXCLUSIVE")
        trainer.watch.look(NOON + 1)
        locked.execute("COMMIT")
    trainer.watch.look(NOON + 2)
    (tmp_path / "link.db").symlink_to(trainer.losses)
    trainer.trains(3, 1)
    trainer.ends()
    assert [row["step"] for row in steps_of(trainer.recorded)] == [2]
    assert [kind for kind, _ in kinds_and_steps(trainer.recorded)] == ["training_start"]


def test_the_command_records_a_training_until_its_job_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACKSIDE_DATABASE", str(tmp_path / "recorded.db"))
    monkeypatch.setenv("TRACKSIDE_RECORDER", "1")
    trainer = Trainer(tmp_path)
    trainer.says(0, "Training")
    trainer.trains(1, 1)
    trainer.ends()
    trainer.recorded.unlink()
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"config": {"process": [{"train": {"batch_size": 3, "steps": 2}}]}}))
    with closing(sqlite3.connect(trainer.database)) as jobs, jobs:  # as the web interface has it
        jobs.execute("ALTER TABLE Job ADD COLUMN pid INTEGER")
        jobs.execute("UPDATE Job SET pid = 999999999")  # has ended: it reads what there is, and ends
    assert main(["--database", str(trainer.database), "--losses", str(trainer.losses), "--config", str(config)]) == 0
    (row,) = steps_of(trainer.recorded)
    assert (row["step"], row["loss"], row["batch_size"]) == (2, 0.5, 3)


def test_the_memory_beside_an_event_is_that_of_the_trainer_s_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACKSIDE_DATABASE", str(tmp_path / "taken.db"))
    monkeypatch.setenv("TRACKSIDE_RECORDER", "1")
    trainer = Trainer(tmp_path)
    with subprocess.Popen(["sleep", "600"]) as process:
        watch = record(trainer.database, trainer.losses, pid=process.pid, job_id="mine")
        trainer.watch = watch
        trainer.says(0, "Training")
        watch.close()
        process.kill()
    (event,) = events_of(tmp_path / "taken.db")
    assert event.kind == "training_start"
    (sample,) = samples_of(tmp_path / "taken.db")
    assert 0 < sample["main_process_memory_gb"] < 0.02, "this test's process is several times as large"


def test_a_config_is_read_whether_it_is_json_or_yaml(tmp_path: Path) -> None:
    config = {"config": {"process": [{"train": {"batch_size": 3, "steps": 9}, "performance_log_every": 0}]}}
    (tmp_path / "a.json").write_text(json.dumps(config))
    (tmp_path / "a.yaml").write_text(
        "config:\n  process:\n  - train: {batch_size: 3, steps: 9}\n    performance_log_every: 0\n"
    )
    for name in ("a.json", "a.yaml"):
        settings = Settings.of(read_config(tmp_path / name))
        assert (settings.batch_size, settings.total_steps, settings.every) == (3, 9, 1)
    assert Settings.of(read_config(tmp_path / "missing.yaml")).batch_size is None
    assert read_config(tmp_path) == {}


def test_where_a_dataset_has_a_batch_size_of_its_own_none_is_recorded() -> None:
    process = {"train": {"batch_size": 3}, "datasets": [{"folder_path": "a"}, {"batch_size": 4}]}
    assert Settings.of({"config": {"process": [process]}}).batch_size is None
