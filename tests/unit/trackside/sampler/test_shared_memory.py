"""Pages that forked workers share are counted once, and what that costs is bounded."""

from __future__ import annotations

from pathlib import Path

from trackside.sampler.cpu_share import CpuShare
from trackside.sampler.shared_memory import SharedMemory, Sized

GIB = 1 << 30


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def rollup(proc: Path, pid: int | str, fair_gib: float) -> None:
    folder = proc / str(pid)
    folder.mkdir(exist_ok=True)
    kibibytes = int(fair_gib * (1 << 20))
    (folder / "smaps_rollup").write_text(f"Rss: 1 kB\nPss: {kibibytes} kB\nPss_Anon: {kibibytes} kB\n")


def test_the_parent_counts_whole_and_workers_with_what_would_be_free_without_them(tmp_path: Path) -> None:
    """10 GB are shared by three processes; each worker has 2 GB of its own."""
    for pid, fair in (("self", 0.0), (1, 10 / 3), (2, 2 + 10 / 3)):
        rollup(tmp_path, pid, fair)
    memory = SharedMemory(now=Clock(), proc=str(tmp_path))
    found = memory.divide([Sized(1, 7, 10 * GIB), Sized(2, 8, 12 * GIB, 1), Sized(3, 9, 12 * GIB, 1)])
    assert {pid: round(size or 0.0, 3) for pid, size in found.items()} == {1: 10.0, 2: 2.0, 3: 2.0}


def test_what_workers_grow_by_between_two_readings_is_their_own(tmp_path: Path) -> None:
    """A worker that began with nothing but its parent's 1 GB, and keeps pictures since then."""
    for pid, fair in (("self", 0.0), (1, 0.5), (2, 0.5)):
        rollup(tmp_path, pid, fair)
    clock = Clock()
    memory = SharedMemory(now=clock, proc=str(tmp_path))
    assert memory.divide([Sized(1, 7, GIB), Sized(2, 8, GIB, 1)])[2] == 0.0
    (tmp_path / "2" / "smaps_rollup").unlink()  # nothing is read anew
    (tmp_path / "1" / "smaps_rollup").unlink()
    assert memory.divide([Sized(1, 7, GIB), Sized(2, 8, 4 * GIB, 1)])[2] == 3.0


def test_without_workers_nothing_is_read(tmp_path: Path) -> None:
    rollup(tmp_path, "self", 0.0)
    assert SharedMemory(now=Clock(), proc=str(tmp_path)).divide([Sized(1, 7, GIB)]) == {1: 1.0}


def test_a_kernel_that_knows_no_parts_shows_sizes(tmp_path: Path) -> None:
    memory = SharedMemory(now=Clock(), proc=str(tmp_path))
    assert memory.divide([Sized(1, 7, GIB), Sized(2, 8, GIB, 1)]) == {1: 1.0, 2: 1.0}


def test_parts_of_another_number_of_workers_are_remembered(tmp_path: Path) -> None:
    """Workers that start again in each epoch cost no new reading."""
    for pid, fair in (("self", 0.0), (1, 0.5), (2, 0.5)):
        rollup(tmp_path, pid, fair)
    memory = SharedMemory(now=Clock(), proc=str(tmp_path))
    family = [Sized(1, 7, GIB), Sized(2, 8, GIB, 1)]
    first = memory.divide(family)
    rollup(tmp_path, 1, 1.0)
    assert memory.divide(family[:1]) == {1: 1.0}
    assert memory.divide(family)[1] == first[1]


def test_a_reading_rests_in_proportion_to_its_cost() -> None:
    clock, spent = Clock(), iter([1.0, 1.003])
    cost = CpuShare(0.001, now=clock, spent=lambda: next(spent))
    assert cost.is_free()
    with cost:
        pass
    clock.now += 2.9
    assert not cost.is_free()
    clock.now += 0.2
    assert cost.is_free()
