"""Tells a training's main processes from its data-loader workers, by inspection."""

from __future__ import annotations

from typing import Container, Mapping, NamedTuple, Tuple

MAIN, WORKER, OTHER = "main", "worker", "other"
_SPAWNED = ("multiprocessing.spawn", "multiprocessing.popen_spawn")
_FORK_SERVER = "multiprocessing.forkserver"
_HELPERS = (
    "multiprocessing.resource_tracker",
    "multiprocessing.semaphore_tracker",
    "_inductor/compile_worker",
    _FORK_SERVER,
)


class Seen(NamedTuple):
    """A process as the system shows it. What cannot be read is empty."""

    pid: int
    parent: int
    command: Tuple[str, ...] = ()
    program: str = ""  # the path of its executable
    image: bytes = b""  # the addresses that the kernel chose when the program was started; a fork keeps them
    name: str = ""  # of its main thread; any program may choose it


def roles_of(tree: Mapping[int, Seen], *, gpu_pids: Container[int]) -> dict[int, str]:
    """Return each process's role. The tree begins with its root, and parents come before their children.

    A worker was forked from a Python process of the training without starting another program, or started by
    multiprocessing; it uses no GPU and has no workers itself. Everything else that is no Python program is `other`.
    """
    roles: dict[int, str] = {}
    for process in tree.values():
        roles[process.pid] = _role(process, tree.get(process.parent), roles, is_on_gpu=process.pid in gpu_pids)
    for process in reversed(list(tree.values())):
        # The ranks of a distributed training are started like workers.
        if roles[process.pid] != OTHER and roles.get(process.parent) == WORKER:
            roles[process.parent] = MAIN
    root = next(iter(tree), None)
    if root is not None and MAIN not in roles.values():
        roles[root] = MAIN  # a trainer that is no Python program
    return roles


def _role(process: Seen, parent: Seen | None, roles: Mapping[int, str], *, is_on_gpu: bool) -> str:
    if is_on_gpu:
        return MAIN
    parent_role = roles.get(process.parent)
    if parent is not None and _is_python(parent) and _is_fork(process, parent):
        return WORKER if parent_role != OTHER or _has(parent, _FORK_SERVER) else OTHER
    if parent_role in (MAIN, WORKER) and any(_has(process, word) for word in _SPAWNED):
        return WORKER
    if parent_role == WORKER or not _is_python(process) or any(_has(process, word) for word in _HELPERS):
        return OTHER
    return MAIN


def _is_fork(process: Seen, parent: Seen) -> bool:
    if process.program != parent.program:
        return False
    if process.image and parent.image:
        return process.image == parent.image  # holds also if one of them has changed its command line
    return process.command == parent.command


def _is_python(process: Seen) -> bool:
    paths = [process.program] if process.program else [*process.command[:1], process.name]
    return any(path.rpartition("/")[2].lower().startswith(("python", "pypy", "pt_main_thread")) for path in paths)


def _has(process: Seen, word: str) -> bool:
    return any(word in part for part in process.command)
