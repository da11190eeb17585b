"""A run's database that was cut off anywhere is read as far as it goes, and analysed."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from stationmaster.analysis.report import Health
from stationmaster.errors import NotFound, UserError
from stationmaster.station.analysis import analyse_file
from stationmaster.station.run_files.recorded_run import read_recorded_run
from stationmaster.station.run_files.sqlite_file import read_database
from trackside.metrics.schema import complete_schema

STEPS = 2000
PAGE = 4096


def write_run(path: Path, *, steps: int = STEPS, job: str = "cats") -> None:
    """Write a database as a recorder does: rows of all tables by turns, in WAL mode."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    complete_schema(connection)
    connection.execute("BEGIN")
    for step in range(1, steps + 1):
        at = 1_790_000_000.0 + step
        connection.execute(
            "INSERT INTO StepMetric (job_id, step, timestamp, loss) VALUES (?, ?, ?, ?)", (job, step, at, 1 / step)
        )
        connection.execute(
            "INSERT INTO GpuSample (job_id, timestamp, gpu_index, name, memory_used_gb, memory_total_gb)"
            " VALUES (?, ?, 0, 'NVIDIA GeForce RTX 4090', 20.0, 24.0)",
            (job, at),
        )
    connection.execute("INSERT INTO RunInfo VALUES (?, 'platform', 'discrete')", (job,))
    connection.execute("COMMIT")
    connection.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "aitk_db.db"
    write_run(path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cut") / "aitk_db.db"


def steps_in(path: Path) -> list[int]:
    return [step for table in read_database(path).tables if table.name == "StepMetric" for step in table.values("step")]


@pytest.mark.parametrize("percent", [*range(0, 100, 7), 99])
def test_a_file_cut_off_anywhere_keeps_its_first_rows(whole: bytes, place: Path, percent: int) -> None:
    place.write_bytes(whole[: len(whole) * percent // 100 + percent])  # also within a page
    assert analyse_file(place).notes, "it names what is missing"
    found = steps_in(place)
    assert found == [*range(1, len(found) + 1)]
    assert len(found) >= (percent - 35) / 100 * STEPS


def test_a_file_cut_off_in_its_first_bytes_still_gives_a_report(place: Path, whole: bytes) -> None:
    for length in (0, 1, 15, 16, 99, 100, 1000, PAGE - 1, PAGE, PAGE + 1):
        place.write_bytes(whole[:length])
        assert analyse_file(place).notes, length


def test_rows_behind_torn_pages_are_found(whole: bytes, place: Path) -> None:
    torn = bytearray(whole)
    for page in range(40, len(whole) // PAGE, 20):
        torn[page * PAGE : (page + 1) * PAGE] = b"\xff" * PAGE
    place.write_bytes(torn)
    found = read_database(place)
    steps = steps_in(place)
    assert found.is_damaged
    assert "StepMetric" in found.notes[0]
    assert steps[0] == 1
    assert max(steps) > 0.9 * STEPS, "the last rows are there"
    assert len(steps) > 0.8 * STEPS


def test_a_log_of_changes_that_was_cut_off_gives_what_was_committed(tmp_path: Path) -> None:
    live, cut = tmp_path / "live.db", tmp_path / "aitk_db.db"
    writer = sqlite3.connect(live, isolation_level=None)
    for setting in ("journal_mode=WAL", "wal_autocheckpoint=0", "synchronous=OFF"):
        writer.execute(f"PRAGMA {setting}")
    complete_schema(writer)
    for step in range(1, 101):
        writer.execute(
            "INSERT INTO StepMetric (job_id, step, timestamp, loss) VALUES ('cats', ?, ?, 0.5)", (step, 1000.0 + step)
        )
    log = live.with_name("live.db-wal").read_bytes()
    shutil.copy(live, cut)
    writer.close()
    kept = []
    for percent in range(0, 101, 4):
        cut.with_name("aitk_db.db-wal").write_bytes(log[: len(log) * percent // 100])
        found = steps_in(cut)
        assert found == [*range(1, len(found) + 1)]
        assert analyse_file(cut).job_id == ("cats" if found else "aitk_db")
        kept.append(len(found))
    assert kept == sorted(kept)
    assert (kept[0], kept[-1]) == (0, 100)


def test_without_its_log_of_changes_a_database_has_what_was_folded_before(tmp_path: Path) -> None:
    live = tmp_path / "live.db"
    write_run(live, steps=50)
    writer = sqlite3.connect(live, isolation_level=None)
    writer.execute("PRAGMA wal_autocheckpoint=0")
    writer.execute("INSERT INTO StepMetric (job_id, step, timestamp, loss) VALUES ('cats', 51, 9e9, 0.5)")
    shutil.copy(live, tmp_path / "aitk_db.db")
    writer.close()
    assert steps_in(tmp_path / "aitk_db.db") == [*range(1, 51)]


def test_several_jobs_are_named_and_one_of_them_can_be_chosen(tmp_path: Path) -> None:
    path = tmp_path / "aitk_db.db"
    write_run(path, steps=5, job="cats")
    write_run(path, steps=7, job="dogs")
    with pytest.raises(UserError, match="holds 2 jobs: dogs, cats") as caught:
        analyse_file(path)
    assert caught.value.hint == "choose one with --job"
    assert analyse_file(path, job="cats").job_id == "cats"
    with pytest.raises(UserError, match="has no job birds"):
        analyse_file(path, job="birds")


def test_log_and_config_beside_the_database_are_found(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    write_run(tmp_path / "logs" / "aitk_db.db", steps=5)
    (tmp_path / "log.txt").write_text("hello\n")
    (tmp_path / "logs" / "config.yaml").write_text("job: extension\n")
    found = read_recorded_run(tmp_path)
    assert found.database == tmp_path / "logs" / "aitk_db.db"
    assert found.run.log == "hello\n"
    assert found.run.info == {"platform": "discrete"}
    assert found.config == tmp_path / "logs" / "config.yaml"


def test_the_output_folder_of_ai_toolkit_has_the_log(tmp_path: Path) -> None:
    write_run(tmp_path / "aitk_db.db", steps=5)
    (tmp_path / "output" / "cats").mkdir(parents=True)
    (tmp_path / "output" / "cats" / "log.txt").write_text("a line\n")
    assert read_recorded_run(tmp_path).run.log == "a line\n"


def test_what_is_missing_or_no_database_is_refused_in_one_line(tmp_path: Path) -> None:
    write_run(tmp_path / "aitk_db.db", steps=5)
    (tmp_path / "text").write_text("step,loss\n1,2\n")
    with pytest.raises(NotFound, match="holds no aitk_db"):
        analyse_file(tmp_path / "..")
    for path, log, config in (("missing.db", None, None), ("aitk_db.db", "x", None), ("aitk_db.db", None, "y")):
        with pytest.raises(NotFound, match="there is no"):
            analyse_file(tmp_path / path, log=log and tmp_path / log, config=config and tmp_path / config)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="is not a run's database"):
        analyse_file(tmp_path / "text")


def test_a_run_that_is_written_just_now_is_not_one_that_vanished(tmp_path: Path) -> None:
    path = tmp_path / "aitk_db.db"
    write_run(path, steps=5)
    (tmp_path / "log.txt").write_text(
        "name:   1%|          | 5/1000 [00:05<16:35,  1.00it/s, lr: 1.0e-04 loss: 3.0e-01]"
    )
    last_row = 1_790_000_005.0
    assert analyse_file(path, now=last_row + 3600).health is Health.CRITICAL
    running = analyse_file(path, now=last_row + 10)
    assert running.health is Health.GOOD
    assert "the training may still run: its newest row is less than 2 minutes old" in running.notes
