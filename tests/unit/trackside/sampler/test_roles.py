"""Workers of data loaders are told apart from everything else by what they are, not by their names."""

from __future__ import annotations

import pytest

from trackside.sampler.roles import Seen, roles_of

PYTHON, SHELL = "/usr/bin/python3.11", "/usr/bin/dash"
TRAIN = ("python", "train.py")
SPAWN = ("python", "-c", "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)")
TRACKER = ("python", "-c", "from multiprocessing.resource_tracker import main;main(5)")
SERVER = ("python", "-c", "from multiprocessing.forkserver import main; main(9, 10, ['__main__'])")


def python(pid: int, parent: int, command: tuple[str, ...] = TRAIN, *, image: bytes = b"", name: str = "") -> Seen:
    return Seen(pid=pid, parent=parent, command=command, program=PYTHON, image=image, name=name)


def shell(pid: int, parent: int) -> Seen:
    return Seen(pid=pid, parent=parent, command=("sh", "-c", "python train.py"), program=SHELL)


def roles(*processes: Seen, gpu_pids: frozenset[int] = frozenset()) -> list[str]:
    return list(roles_of({process.pid: process for process in processes}, gpu_pids=gpu_pids).values())


def test_forked_pythons_are_workers_and_their_launcher_is_not_the_main_process() -> None:
    assert roles(shell(1, 0), python(2, 1), python(3, 2), python(4, 2)) == ["other", "main", "worker", "worker"]


def test_a_fork_is_known_by_its_image_although_it_has_changed_its_command_line() -> None:
    renamed = python(3, 2, ("loader 1",), image=b"a")
    assert roles(python(2, 1, image=b"a"), renamed) == ["main", "worker"]


def test_the_same_command_that_was_started_anew_is_no_worker() -> None:
    assert roles(python(2, 1, image=b"a"), python(3, 2, image=b"b")) == ["main", "main"]


def test_a_name_alone_makes_no_worker() -> None:
    named = python(3, 2, ("python", "convert.py"), name="pt_data_worker")
    assert roles(python(2, 1), named) == ["main", "main"]


def test_children_of_multiprocessing_are_workers_and_its_trackers_are_not() -> None:
    assert roles(python(2, 1), python(3, 2, TRACKER), python(4, 2, SPAWN)) == ["main", "other", "worker"]


def test_children_of_a_fork_server_are_workers() -> None:
    assert roles(python(2, 1), python(3, 2, SERVER), python(4, 3, SERVER)) == ["main", "other", "worker"]


def test_a_child_of_multiprocessing_with_gpu_memory_is_a_main_process() -> None:
    assert roles(python(2, 1), python(4, 2, SPAWN), gpu_pids=frozenset({4})) == ["main", "main"]


def test_a_rank_that_has_workers_is_a_main_process() -> None:
    assert roles(python(2, 1), python(3, 2, SPAWN), python(4, 3, SPAWN)) == ["main", "main", "worker"]


def test_programs_that_a_worker_starts_do_not_make_it_a_main_process() -> None:
    helper = python(4, 3, ("python", "decode.py"))
    assert roles(python(2, 1), python(3, 2), helper) == ["main", "worker", "other"]


def test_compilers_and_their_forks_are_others() -> None:
    command = ("python", "/lib/torch/_inductor/compile_worker/__main__.py")
    assert roles(python(2, 1), python(3, 2, command), python(4, 3, command)) == ["main", "other", "other"]


def test_a_subshell_is_no_worker() -> None:
    assert roles(shell(1, 0), shell(2, 1), python(3, 2)) == ["other", "other", "main"]


@pytest.mark.parametrize("command", [("trainer",), ("sh", "-c", "trainer")])
def test_a_training_without_python_is_its_own_main_process(command: tuple[str, ...]) -> None:
    assert roles(Seen(1, 0, command, "/opt/trainer")) == ["main"]


def test_programs_of_another_user_are_judged_by_their_command_lines() -> None:
    hidden = [Seen(2, 1, TRAIN), Seen(3, 2, TRAIN), Seen(4, 2, ("nvcc", "kernel.cu"))]
    assert roles(*hidden) == ["main", "worker", "other"]
