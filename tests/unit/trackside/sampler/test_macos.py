"""A Mac's programs are understood, with outputs in the form that their manual pages describe."""

from __future__ import annotations

from pathlib import Path

import pytest

from trackside.sampler.macos import MacMachine, MacPrograms, parse_mac_memory, parse_ps, readings_of_tree

VM_STAT = """Mach Virtual Memory Statistics: (page size of 16384 bytes)
Pages free:                               65536.
Pages active:                            400000.
Pages inactive:                          131072.
Pages speculative:                        65536.
Pages wired down:                        150000.
"Translation faults":                 123456789.
File-backed pages:                       100000.
"""
SYSCTL = "17179869184\ntotal = 2048.00M  used = 1024.00M  free = 1024.00M  (encrypted)\n"
PS = """  PID  PPID    RSS  %CPU COMMAND
    1     0  10240   0.5 /sbin/launchd
  500     1   2048   0.0 /bin/zsh -c python3 train.py --name my run
  501   500 4194304  99.5 /opt/homebrew/Python.app/Contents/MacOS/Python train.py --name my run
  502   501 1048576  20,0 /opt/homebrew/Python.app/Contents/MacOS/Python -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=7)
  503   501   8192   0.0 /opt/homebrew/Python.app/Contents/MacOS/Python -c from multiprocessing.resource_tracker import main;main(7)
  504     1   8192   0.0 /usr/sbin/cfprefsd agent
nonsense
"""  # noqa: E501 - as ps prints them


def test_memory_is_what_vm_stat_and_sysctl_report() -> None:
    memory = parse_mac_memory(VM_STAT, SYSCTL)
    assert memory == (16.0, 14.0, 4.0, 1.0)


@pytest.mark.parametrize(("vm_stat", "sysctl"), [("", SYSCTL), (VM_STAT, "unknown oid"), ("Pages free: 1.", SYSCTL)])
def test_an_output_that_is_not_understood_is_an_error(vm_stat: str, sysctl: str) -> None:
    with pytest.raises(ValueError, match="not understood"):
        parse_mac_memory(vm_stat, sysctl)


def test_the_trainings_processes_have_roles() -> None:
    found = readings_of_tree(parse_ps(PS), 500, {})
    assert [(process.pid, process.role, process.memory_gb) for process in found if process.pid != 500] == [
        (501, "main", 4.0),
        (502, "worker", 1.0),
        (503, "other", 1 / 128),
    ]
    assert (found[0].role, found[2].cpu_percent) == ("other", 20.0)


def test_a_training_that_has_ended_has_no_processes() -> None:
    assert readings_of_tree(parse_ps(PS), 999, {}) == []


def test_a_machine_is_read_with_its_programs(tmp_path: Path) -> None:
    machine = MacMachine(501, folder=str(tmp_path), quick=False, now=lambda: 1.0, programs=programs(tmp_path))
    assert machine.memory().total_gb == 16.0
    assert len(machine.processes({})) == 3
    assert 0 < (machine.cpu_percent() or 0) <= 100
    assert machine.io().disk_total_gb


def test_a_program_that_fails_is_named(tmp_path: Path) -> None:
    missing = MacPrograms(*(str(tmp_path / "missing") for _ in range(3)))
    machine = MacMachine(501, folder=str(tmp_path), quick=False, now=lambda: 1.0, programs=missing)
    with pytest.raises(OSError, match="missing fails"):
        machine.memory()


def test_a_quick_reading_starts_no_program(tmp_path: Path) -> None:
    missing = MacPrograms(*(str(tmp_path / "missing") for _ in range(3)))
    machine = MacMachine(501, folder=str(tmp_path), quick=True, now=lambda: 1.0, programs=missing)
    assert (machine.memory().total_gb, machine.processes({})) == (None, [])


def programs(folder: Path) -> MacPrograms:
    paths = []
    for name, output in (("vm_stat", VM_STAT), ("sysctl", SYSCTL), ("ps", PS)):
        (folder / f"{name}.txt").write_text(output)
        path = folder / name
        path.write_text(f"#!/bin/sh\nexec cat {folder}/{name}.txt\n")
        path.chmod(0o755)
        paths.append(str(path))
    return MacPrograms(*paths)
