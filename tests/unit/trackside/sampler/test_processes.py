"""Processes are found in every kind of /proc, and GPU memory is given to the right ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from trackside.sampler.linux import LinuxMachine
from trackside.sampler.sample import ProcessReading

ROOT, WORKER, STRANGER = 70, 71, 72


def add_process(
    proc: Path,
    pid: int,
    parent: int,
    *,
    kibibytes: int = 1024,
    start: int = 5,
    state: str = "S",
    ticks: int = 100,
    io_bytes: int = 0,
) -> None:
    folder = proc / str(pid)
    (folder / "fd").mkdir(parents=True, exist_ok=True)
    (folder / f"task/{pid}").mkdir(parents=True, exist_ok=True)
    fields = [str(number) for number in range(5, 53)]  # from the fifth field on
    fields[9:11], fields[15], fields[17] = [str(ticks), "50"], "1", str(start)
    (folder / "stat").write_text(f"{pid} (python) {state} {parent} " + " ".join(fields))
    (folder / "io").write_text(f"rchar: {io_bytes}\nwchar: 0\nread_bytes: 0\nwrite_bytes: 0\n")
    add_thread(proc, pid, pid, state=state)
    (folder / "status").write_text(f"Name: python\nRssAnon:\t{kibibytes} kB\nRssShmem:\t0 kB\n")
    (folder / "cmdline").write_text("python\0train.py\0")


def add_thread(proc: Path, pid: int, thread: int, *, state: str, waits_in: str = "do_epoll_wait") -> None:
    folder = proc / f"{pid}/task/{thread}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "stat").write_text(f"{thread} (python (x)) {state} 1 " + " ".join("0" * 48))
    (folder / "wchan").write_text(waits_in)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A small /proc without lists of children: a training, its worker and a stranger."""
    (tmp_path / "self/ns").mkdir(parents=True)
    (tmp_path / "self/ns/pid").symlink_to("pid:[4026531836]")
    for pid, parent in ((ROOT, 1), (WORKER, ROOT), (STRANGER, 1)):
        add_process(tmp_path, pid, parent)
    return tmp_path


def read(proc: Path, gpu_memory_gb: dict[int, float] | None = None) -> list[ProcessReading]:
    machine = LinuxMachine(ROOT, folder=str(proc), now=lambda: 1000.0, proc=str(proc))
    return machine.processes(gpu_memory_gb or {})


def roles(found: list[ProcessReading]) -> list[tuple[int, str]]:
    return [(process.pid, process.role) for process in found]


def test_without_lists_of_children_all_processes_are_looked_at(proc: Path) -> None:
    assert roles(read(proc)) == [(ROOT, "main"), (WORKER, "worker")]


def test_a_zombie_is_no_process(proc: Path) -> None:
    add_process(proc, WORKER, ROOT, state="Z")
    assert roles(read(proc)) == [(ROOT, "main")]


def test_another_process_with_the_trainings_pid_is_not_the_training(proc: Path) -> None:
    machine = LinuxMachine(ROOT, folder=str(proc), now=lambda: 1000.0, proc=str(proc))
    add_process(proc, ROOT, 1, start=9)
    assert machine.processes({}) == []


def test_a_process_on_the_gpu_is_a_main_process_with_its_memory(proc: Path) -> None:
    found = read(proc, {WORKER: 2.0, STRANGER: 3.0})
    assert [(process.role, process.gpu_memory_gb) for process in found] == [("main", None), ("main", 2.0)]


def test_in_a_container_the_drivers_pids_count_only_for_processes_that_have_a_gpu_open(proc: Path) -> None:
    (proc / "self/ns/pid").unlink()
    (proc / "self/ns/pid").symlink_to("pid:[4026532111]")
    (proc / str(ROOT) / "fd/9").symlink_to("/dev/nvidia0")
    found = read(proc, {ROOT: 2.0, WORKER: 3.0})
    assert [(process.role, process.gpu_memory_gb) for process in found] == [("main", 2.0), ("worker", None)]


def test_cpu_time_is_measured_between_two_readings(proc: Path) -> None:
    now = [1000.0]
    machine = LinuxMachine(ROOT, folder=str(proc), now=lambda: now[0], proc=str(proc))
    assert [process.cpu_percent for process in machine.processes({})] == [None, None]
    now[0] = 1005.0
    assert [process.cpu_percent for process in machine.processes({})] == [0.0, 0.0]


class Watched:
    """A machine whose clock goes on by five seconds with each reading."""

    def __init__(self, proc: Path) -> None:
        self._now = 1000.0
        self._machine = LinuxMachine(ROOT, folder=str(proc), now=lambda: self._now, proc=str(proc))

    def read(self) -> list[ProcessReading]:
        self._now += 5.0
        return self._machine.processes({})


def test_bytes_read_and_written_are_measured_between_two_readings(proc: Path) -> None:
    watched = Watched(proc)
    assert [process.io_mb_per_second for process in watched.read()] == [None, None]
    add_process(proc, WORKER, ROOT, io_bytes=10_000_000)
    assert [process.io_mb_per_second for process in watched.read()] == [0.0, 2.0]
    (proc / str(ROOT) / "io").unlink()  # as for the process of another user
    assert [process.io_mb_per_second for process in watched.read()] == [None, 0.0]


@pytest.mark.parametrize(
    ("thread", "state"),
    [
        ({"state": "S"}, "asleep"),
        ({"state": "Z"}, "asleep"),
        ({"state": "R"}, "running"),
        ({"state": "D"}, "disk"),
        ({"state": "T"}, "stopped"),
        ({"state": "t"}, "stopped"),
        ({"state": "S", "waits_in": "request_wait_answer"}, "disk"),
        ({"state": "S", "waits_in": "do_freezer_trap"}, "stopped"),
        ({"state": "?"}, None),
    ],
)
def test_a_process_is_asleep_only_if_all_its_threads_are(proc: Path, thread: dict[str, str], state: str | None) -> None:
    add_thread(proc, WORKER, 80, **thread)
    watched = Watched(proc)
    assert [process.state for process in watched.read()] == [None, None]
    assert [process.state for process in watched.read()] == ["asleep", state]


def test_the_threads_of_a_busy_training_are_not_looked_at(proc: Path) -> None:
    watched = Watched(proc)
    watched.read()
    add_process(proc, WORKER, ROOT, ticks=300)  # two seconds of five
    assert [process.state for process in watched.read()] == [None, None]
    assert [process.state for process in watched.read()] == ["asleep", "asleep"]
