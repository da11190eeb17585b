"""What the `ssh` provider runs on an own machine, sent through standard input to that machine's Python.

A job's machine is one folder `<job root>/<job>` with a description in it, and every process that carries the label in
its environment. Nothing outside that folder is ever touched. Standard library only, Python 3.8 or newer; the answer
is one line of JSON.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    Facts = dict[str, Any]

VARIABLE = "STATIONMASTER_MACHINE"
DESCRIPTION = "machine.json"
DEFAULT_ROOTS = ("/opt/stationmaster/jobs", "~/.local/share/stationmaster/jobs")
_UNFINISHED = ".new-"
_KILL_SECONDS = 10.0
_MOST_CHASES = 2000  # looks for new processes in a row; each takes some ten microseconds


def survey(asked: Facts) -> Facts:
    """All machines here, whoever made them."""
    return {"machines": [facts for _, facts in _machines(asked)]}


def look_for_room(asked: Facts) -> Facts:
    """How many machines are here and how much room is left for another."""
    root, problem = _root_for_jobs(asked)
    if root is None:
        return {"refused": problem}
    return {"taken": len(_machines(asked)), "disk_free_bytes": shutil.disk_usage(root).free}


def create(asked: Facts) -> Facts:
    """The machine's folder is there, whole; the same label again changes nothing."""
    root, problem = _root_for_jobs(asked)
    if root is None:
        return {"refused": problem}
    with _locked(root):
        _clear_unfinished(root)
        taken = _machines(asked)
        if any(facts["label"] == asked["label"] for _, facts in taken):
            return {"created": True}
        if len(taken) >= asked["slots"]:
            return {"full": len(taken)}
        return _make(root, asked)


def describe(asked: Facts) -> Facts:
    """The machine with this label; one whose folder is gone exists as long as a process of it does."""
    label = asked["label"]
    found = [facts for _, facts in _machines(asked) if facts["label"] == label]
    if found:
        return {"machine": found[0]}
    return {"machine": {"label": label, "ending": True} if any(_carriers(label)) else None}


def destroy(asked: Facts) -> Facts:
    """The machine's processes are dead and its folder is gone. Cut off in between, it is still listed."""
    label = asked["label"]
    found = [(folder, facts) for folder, facts in _machines(asked) if facts["label"] == label]
    for folder, facts in found:
        _write(folder, {**facts, "ending": True})  # from here on it is no machine to work on
    _kill_all(label)
    for folder, _ in found:
        _remove(folder)
    return {"destroyed": True}


VERBS: dict[str, Callable[[Facts], Facts]] = {
    "survey": survey,
    "look_for_room": look_for_room,
    "create": create,
    "describe": describe,
    "destroy": destroy,
}


def main(arguments: list[str]) -> None:
    verb, asked = arguments[0], json.loads(arguments[1])
    signal.alarm(int(asked["limit_seconds"]))  # whoever asked has stopped waiting by then
    os.umask(0o077)
    print(json.dumps(VERBS[verb](asked)))


def _root_for_jobs(asked: Facts) -> tuple[Path | None, str | None]:
    """The first folder that can be written to, made if need be; else why there is none."""
    problem = None
    for root in _roots(asked):
        try:
            root.mkdir(mode=0o755, parents=True, exist_ok=True)
        except OSError as error:
            problem = f"{root} cannot be written to: {error.strerror}"
            continue
        if os.access(root, os.W_OK | os.X_OK):
            return root, None
        problem = f"{root} cannot be written to: it belongs to somebody else"
    return None, problem


def _roots(asked: Facts) -> list[Path]:
    return [Path(root).expanduser() for root in asked["roots"]]


def _machines(asked: Facts) -> list[tuple[Path, Facts]]:
    found = []
    for root in _roots(asked):
        for path in sorted(root.glob(f"*/{DESCRIPTION}")):
            facts = _read(path)
            if facts is not None:
                found.append((path.parent, {**facts, "job_root": str(root), "folder": str(path.parent)}))
    return found


def _read(description: Path) -> Facts | None:
    """What it says; None where the folder is nothing of ours, or gone meanwhile."""
    if description.parent.is_symlink():
        return None
    try:
        facts = json.loads(description.read_text(encoding="utf-8"))
    except (FileNotFoundError, PermissionError, ValueError):
        return None
    return facts if isinstance(facts, dict) and "label" in facts else None


def _write(folder: Path, facts: Facts) -> None:
    fresh = folder / f".{DESCRIPTION}"
    fresh.write_text(json.dumps(facts), encoding="utf-8")
    fresh.replace(folder / DESCRIPTION)


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    """One create at a time, so that slots are counted right."""
    with (root / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _clear_unfinished(root: Path) -> None:
    """Nobody else makes a machine while the lock is held, so these are what a cut create left."""
    for leftover in root.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _make(root: Path, asked: Facts) -> Facts:
    """The folder appears whole by one rename, which fails where something else lies already."""
    fresh = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=root))
    target = root / asked["folder"]
    try:
        (fresh / "tmp").mkdir()
        _write(fresh, {**asked["facts"], "label": asked["label"], "created_at": time.time()})
        fresh.rename(target)
    except OSError as error:
        shutil.rmtree(fresh, ignore_errors=True)
        return {"refused": f"{target} cannot be made: {error.strerror}"}
    return {"created": True}


def _kill_all(label: str) -> None:
    """Kill until two looks in a row find nothing: a process may fork while we look.

    Each is killed the moment it is found: one that forks all the time is not to come to it again.
    """
    ends = time.monotonic() + _KILL_SECONDS
    quiet_looks = 0
    while quiet_looks < 2:
        quiet_looks += 1
        for pid in _carriers(label):
            quiet_looks = 0
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # gone already, which is what is wanted
        if time.monotonic() > ends:
            raise SystemExit(f"processes of {label} do not die: {list(_carriers(label))}")
        time.sleep(0.01)


def _carriers(label: str) -> Iterator[int]:
    """Every live process with the machine's label in its environment, ourselves left out."""
    wanted = f"{VARIABLE}={label}".encode()
    for pid, environment in _environments():
        if wanted in environment and pid != os.getpid():
            yield pid


def _environments() -> Iterator[tuple[int, list[bytes]]]:
    if not Path("/proc/self/environ").exists():
        yield from _environments_by_ps()
        return
    newest = _newest_pid()
    yield from _environments_of(int(process.name) for process in Path("/proc").iterdir() if process.name.isdigit())
    # A process that forks and ends all the time is in no listing: it is found among those that came after it.
    for _ in range(_MOST_CHASES):
        known, newest = newest, _newest_pid()
        if newest <= known:
            return
        yield from _environments_of(range(known + 1, newest + 1))


def _environments_of(pids: Iterable[int]) -> Iterator[tuple[int, list[bytes]]]:
    for pid in pids:
        try:
            yield pid, Path("/proc", str(pid), "environ").read_bytes().split(b"\0")
        except OSError:  # it has ended, or belongs to another user
            continue


def _newest_pid() -> int:
    """The number of the newest process; 0 where /proc shows processes and nothing else, as in some containers."""
    try:
        return int(Path("/proc/loadavg").read_bytes().split()[-1])
    except OSError:
        return 0


def _environments_by_ps() -> Iterator[tuple[int, list[bytes]]]:
    listed = subprocess.run(["ps", "eww", "-ax", "-o", "pid=,command="], stdout=subprocess.PIPE, check=True).stdout
    for line in listed.splitlines():
        pid, _, words = line.strip().partition(b" ")
        yield int(pid), words.split(b" ")


def _remove(folder: Path) -> None:
    """The description goes last, so that a removal that was cut off can be seen and finished."""
    facts = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
    for _ in range(5):
        for path in list(folder.iterdir()):
            if path.name != DESCRIPTION:
                _remove_one(path)
        (folder / DESCRIPTION).unlink()
        try:
            return folder.rmdir()
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
            _write(folder, facts)  # a file came late: still a machine to be destroyed
    raise SystemExit(f"{folder} fills as fast as it is emptied")


def _remove_one(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


if __name__ == "__main__":
    main(sys.argv[1:])
