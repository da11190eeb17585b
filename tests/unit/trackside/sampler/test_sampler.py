"""A sampler reads what it can and notes what it cannot."""

from __future__ import annotations

from pathlib import Path

from trackside.sampler.sampler import Sampler


def test_the_memory_of_this_machine_is_read(tmp_path: Path) -> None:
    notes: list[str] = []
    memory = Sampler(None, folder=str(tmp_path), note=notes.append).take(1000.0).memory
    assert 0 < (memory.used_gb or 0) <= (memory.total_gb or 0)
    assert 0 < (memory.available_gb or 0) <= (memory.total_gb or 0)
    assert notes == []
