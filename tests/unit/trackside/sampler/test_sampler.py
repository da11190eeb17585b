"""A sampler reads what it can and notes what it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from trackside.sampler.sample import sample_from_record
from trackside.sampler.sampler import Sampler


def test_the_memory_of_this_machine_is_read(tmp_path: Path) -> None:
    notes: list[str] = []
    memory = Sampler(None, folder=str(tmp_path), note=notes.append).take(1000.0).memory
    assert 0 < (memory.used_gb or 0) <= (memory.total_gb or 0)
    assert 0 < (memory.available_gb or 0) <= (memory.total_gb or 0)
    assert notes == []


def test_a_source_that_fails_is_noted_once_and_the_others_are_read(tmp_path: Path) -> None:
    notes: list[str] = []
    sampler = Sampler(os.getpid(), folder=str(tmp_path / "missing"), note=notes.append)
    for _ in range(3):
        sample = sampler.take(1000.0)
    assert sample.io.disk_free_gb is None
    assert sample.memory.total_gb
    assert sample.main_process_memory_gb
    assert len(notes) == 1
    assert notes[0].startswith("disk and network cannot be read: ")


def test_a_sample_is_the_same_after_it_was_a_record(tmp_path: Path) -> None:
    sample = Sampler(os.getpid(), folder=str(tmp_path), note=print).take(1000.0)
    assert sample_from_record(sample.as_record()) == sample


def test_facts_are_those_of_this_machine(tmp_path: Path) -> None:
    facts = Sampler(None, folder=str(tmp_path), note=print).facts()
    assert 0 < float(facts["cpu_cores"]) <= (os.cpu_count() or 0)
    assert -50_400 <= int(facts["utc_offset_seconds"]) <= 50_400


def test_what_is_slow_to_import_is_imported_only_where_it_is_needed() -> None:
    script = "import sys, trackside.sampler.sampler; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    assert {"trackside.sampler.linux", "trackside.sampler.macos", "ctypes", "subprocess"}.isdisjoint(loaded)
