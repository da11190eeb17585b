"""What a killed training left in its journal is read by home as trackside itself would fold it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from stationmaster.station.analysis import analyse_file
from stationmaster.station.run_files.recorded_run import read_recorded_run
from trackside.metrics.database import open_database
from trackside.metrics.fold import (
    event_record,
    fold_journal,
    fold_leftovers,
    info_record,
    sample_record,
    step_record,
)
from trackside.metrics.journal import MARK, STEP, STEP_LAYOUT, Journal
from trackside.sampler.sample import GpuReading, MemoryReading, Sample


def write_step(journal: Journal, step: int) -> None:
    mapped, free = journal.step_room
    STEP_LAYOUT.pack_into(mapped, next(free), STEP, 4, step, 1000.0 + step, 1 / step, 1e-4, float("nan"), 1.0, MARK)


def recorded(folder: Path, *, folded: int, steps: int) -> Path:
    """A database with some steps in it, and a journal whose process died with more."""
    path = folder / "aitk_db.db"
    with closing(open_database(str(path))) as connection:
        journal = Journal(f"{path}.journals", "cats")
        journal.open_for_steps()
        for step in range(1, folded + 1):
            write_step(journal, step)
        fold_journal(connection, journal, snapshot=lambda: None)
        for step in range(folded + 1, steps + 1):
            write_step(journal, step)
        journal.append(step_record(steps, 1000.0 + steps, {"reward": 0.5}))
        journal.append(event_record("oom_error", 1500.0, {"step": steps}))
        journal.append(info_record({"platform": "discrete"}))
        gpu = GpuReading(0, "NVIDIA A40", memory_used_gb=44.0, memory_total_gb=45.0)
        journal.append(sample_record(Sample(1400.0, memory=MemoryReading(64.0, 20.0, 44.0, 0.0), gpus=(gpu,))))
        for segment in journal.close():
            segment.release()
    return path


def test_rows_of_the_journal_are_those_that_a_fold_would_make(tmp_path: Path) -> None:
    path = recorded(tmp_path, folded=30, steps=50)
    found = read_recorded_run(path).run
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        assert fold_leftovers(connection, f"{path}.journals") > 0
    folded = read_recorded_run(path).run
    assert not list(Path(f"{path}.journals").glob("*.journal"))
    assert found.job_id == folded.job_id == "cats"
    assert found.info == folded.info == {"platform": "discrete"}
    assert folded.tables["StepMetric"].values("step") == [*range(1, 51)]
    for name in ("StepMetric", "StepValue", "TrainingEvent", "MetricsSample", "GpuSample"):
        ours, theirs = ([dict(row) for row in run.tables[name].rows()] for run in (found, folded))
        for row in (*ours, *theirs):
            row.pop("id")
            for column in [column for column, value in row.items() if value is None]:
                row.pop(column)
            for derived in ("gpu_memory_used_gb", "gpu_utilization_percent"):
                row.pop(derived, None)
        assert ours == theirs, name


def test_nothing_is_written_and_a_journal_alone_suffices(tmp_path: Path) -> None:
    path = recorded(tmp_path, folded=0, steps=20)
    before = {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()}
    assert analyse_file(path).summary.steps_completed == 20
    assert {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()} == before


def test_a_journal_that_was_cut_off_gives_its_first_steps(tmp_path: Path) -> None:
    path = recorded(tmp_path, folded=0, steps=50)
    for segment in Path(f"{path}.journals").glob("*.journal"):
        data = segment.read_bytes()
        for size in (0, 5, 2047, 2048, 2048 + 64 * 10 + 3, len(data) // 2):
            segment.write_bytes(data[:size])
            assert analyse_file(path).notes is not None
        segment.write_bytes(data)
    assert analyse_file(path).summary.steps_completed == 50
