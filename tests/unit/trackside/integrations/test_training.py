"""A framework's training opens and closes its run once, and its hooks cannot harm it."""

from __future__ import annotations

import json
import logging
import pickle
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from trackside import Run
from trackside.integrations.late_values import LateRows
from trackside.integrations.quiet_hooks import quiet
from trackside.integrations.training import Training


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRACKSIDE_DATABASE", str(tmp_path / "run.db"))
    monkeypatch.setenv("TRACKSIDE_JOB", "job")
    monkeypatch.setenv("TRACKSIDE_RECORDER", "1")
    return tmp_path / "run.db"


def events(database: Path) -> list[tuple[str, dict[str, Any]]]:
    with closing(sqlite3.connect(database)) as connection:
        found = connection.execute("SELECT event_type, details FROM TrainingEvent ORDER BY id").fetchall()
    return [(kind, json.loads(details)) for kind, details in found]


def test_a_training_has_one_start_and_one_end(database: Path) -> None:
    training = Training()
    training.begin("demo", {"lr": 0.1})
    training.end()
    training.end()
    assert events(database) == [("training_start", {"config": {"lr": 0.1}}), ("training_end", {"config": {"lr": 0.1}})]


def test_what_is_left_is_written_before_the_end_and_may_fail(database: Path) -> None:
    def write_rest() -> None:
        assert training.run is not None
        training.run.event("save_end")
        raise RuntimeError("the GPU does not answer")

    training = Training(before_end=write_rest)
    training.begin("demo", {})
    training.end()
    assert [kind for kind, _ in events(database)] == ["training_start", "save_end", "training_end"]


def test_a_training_that_has_not_begun_can_be_sent_to_another_process() -> None:
    assert not pickle.loads(pickle.dumps(Training(before_end=LateRows().write_all))).is_open


def test_an_out_of_memory_error_comes_before_the_end(database: Path) -> None:
    training = Training()
    training.begin("demo", {})
    training.end(RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB."))
    assert [kind for kind, _ in events(database)] == ["training_start", "oom_error", "training_end"]


def test_other_errors_only_end_it(database: Path) -> None:
    training = Training()
    training.begin("demo", {})
    training.end(ValueError("bad config"))
    assert [kind for kind, _ in events(database)] == ["training_start", "training_end"]


def test_an_error_that_ends_the_program_ends_the_training_first(database: Path) -> None:
    before, seen = sys.excepthook, []
    sys.excepthook = lambda kind, error, trace: seen.append(error)
    try:
        training = Training()
        training.begin("demo", {})
        error = MemoryError("no memory")
        sys.excepthook(MemoryError, error, None)
        assert [kind for kind, _ in events(database)] == ["training_start", "oom_error", "training_end"]
        assert seen == [error], "Python still prints it"
        sys.excepthook(MemoryError, error, None)
        assert len(events(database)) == 3
    finally:
        sys.excepthook = before


def test_an_ended_training_leaves_the_programs_errors_alone(database: Path) -> None:
    before = sys.excepthook
    training = Training()
    training.begin("demo", {})
    assert sys.excepthook != before
    training.end()
    assert sys.excepthook is before


def test_processes_beside_the_first_write_only_that_memory_ran_out(database: Path) -> None:
    second = Training()
    second.begin("demo", {}, rank=1)
    assert second.run is None
    second.end(MemoryError())
    assert [(kind, details["rank"]) for kind, details in events(database)] == [("oom_error", 1)]


def test_a_run_of_the_script_is_left_to_the_script(database: Path) -> None:
    with Run() as run:
        training = Training(run)
        training.begin("demo", {})
        training.end()
        run.step(1, loss=0.5)
    assert [kind for kind, _ in events(database)] == ["training_start", "training_end"]


def test_an_error_in_a_hook_is_logged_once_and_never_raised(caplog: pytest.LogCaptureFixture) -> None:
    @quiet
    def hook() -> None:
        raise ValueError("a value that cannot be read")

    with caplog.at_level(logging.WARNING, logger="trackside"):
        hook()
        hook()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "hook could not record" in caplog.text
