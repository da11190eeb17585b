"""A trainer that uses the same file is never kept waiting."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

from trackside.metrics.database import open_database
from trackside.metrics.fold import finish_journal, fold_journal, sample_record
from trackside.metrics.journal import Journal
from trackside.metrics.locations import journal_folder
from trackside.sampler.sample import GpuReading, IoReading, MemoryReading, ProcessReading, Sample

SAMPLES = 2 * 3600 // 5  # of two hours


def sample(number: int) -> Sample:
    """A sample of a machine with two GPUs, a training and four workers."""
    value = 1.0 + number / 7
    gpus = tuple(GpuReading(index, "NVIDIA H200", value, 140.0, value, value, value) for index in range(2))
    processes = tuple(ProcessReading(1000 + index, "worker", value, value, value) for index in range(5))
    memory, io = MemoryReading(*[value] * 4), IoReading(*[value] * 6)
    return Sample(1.7e9 + 5 * number, memory, value, value, 4, value, gpus, processes, io)


class Trainer(threading.Thread):
    """Writes to its own table of the same file, again and again, and waits a second at most."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self.is_over = threading.Event()
        self.written = 0
        self.refused = 0

    def run(self) -> None:
        connection = sqlite3.connect(self._path, timeout=1.0, isolation_level=None)
        connection.execute("CREATE TABLE IF NOT EXISTS Job (id INTEGER PRIMARY KEY, status TEXT)")
        while not self.is_over.wait(0.002):
            try:
                connection.execute("INSERT INTO Job (status) VALUES ('running')")
                self.written += 1
            except sqlite3.OperationalError:
                self.refused += 1
        connection.close()


def test_samples_lock_no_trainer_out(tmp_path: Path) -> None:
    path = tmp_path / "aitk_db.db"
    connection = open_database(str(path))
    trainer = Trainer(path)
    trainer.start()
    journal = Journal(journal_folder(str(path)), "j")
    for number in range(SAMPLES):
        journal.append(sample_record(sample(number)))
        if number % 10 == 9:
            fold_journal(connection, journal, snapshot=lambda: None)
    finish_journal(connection, journal, snapshot=lambda: None)
    trainer.is_over.set()
    trainer.join()
    assert trainer.written > 0
    assert trainer.refused == 0
    assert connection.execute("SELECT count(*) FROM MetricsSample").fetchone() == (SAMPLES,)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
