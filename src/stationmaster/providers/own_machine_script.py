"""The script that the `ssh` provider runs on your own machines: it is sent to the machine's Python on stdin.

A job's machine is one folder `<job root>/<job>` with a description in it, and every process with the label in its
environment. Nothing outside that folder is changed. Standard library only, Python 3.8 or newer; prints a line of JSON.
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
_MOST_CHASES = 2000  # consecutive scans for new processes; each takes about ten microseconds


def survey(asked: Facts) -> Facts:
    """All machines on this host, of any installation."""
    return {"machines": [facts for _, facts in _machines(asked)]}


def look_for_room(asked: Facts) -> Facts:
    """The number of machines on this host, and the free disk space."""
    root, problem = _root_for_jobs(asked)
    if root is None:
        return {"refused": problem}
    return {"taken": len(_machines(asked)), "disk_free_bytes": shutil.disk_usage(root).free}


def create(asked: Facts) -> Facts:
    """Create the machine's folder; does nothing if one with this label exists."""
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
    """The machine with this label; without a folder it still exists while one of its processes lives."""
    label = asked["label"]
    found = [facts for _, facts in _machines(asked) if facts["label"] == label]
    if found:
        return {"machine": found[0]}
    return {"machine": {"label": label, "ending": True} if any(_carriers(label)) else None}


def destroy(asked: Facts) -> Facts:
    """Kill the machine's processes and remove its folder. If interrupted, it is still listed."""
    label = asked["label"]
    found = [(folder, facts) for folder, facts in _machines(asked) if facts["label"] == label]
    for folder, facts in found:
        _write(folder, {**facts, "ending": True})  # from now on it is not usable
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
    signal.alarm(int(asked["limit_seconds"]))  # the caller has timed out by then
    os.umask(0o077)
    print(json.dumps(VERBS[verb](asked)))


def _root_for_jobs(asked: Facts) -> tuple[Path | None, str | None]:
    """The first writable folder, created if needed; else the reason why there is none."""
    problem = None
    for root in _roots(asked):
        try:
            root.mkdir(mode=0o755, parents=True, exist_ok=True)
        except OSError as error:
            problem = f"{root} is not writable: {error.strerror}"
            continue
        if os.access(root, os.W_OK | os.X_OK):
            return root, None
        problem = f"{root} is not writable: it belongs to another user"
    return None, problem


def _roots(asked: Facts) -> list[Path]:
    """The folders for jobs; one that a variable of the machine names, only where it is set."""
    named = (os.path.expandvars(root) for root in asked["roots"])
    return [Path(root).expanduser() for root in named if not root.startswith("$")]


def _machines(asked: Facts) -> list[tuple[Path, Facts]]:
    found = []
    for root in _roots(asked):
        for path in sorted(root.glob(f"*/{DESCRIPTION}")):
            facts = _read(path)
            if facts is not None:
                found.append((path.parent, {**facts, "job_root": str(root), "folder": str(path.parent)}))
    return found


def _read(description: Path) -> Facts | None:
    """The description; None if the folder is not ours or is gone."""
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
    """Allow one create at a time, so that slots are counted correctly."""
    with (root / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _clear_unfinished(root: Path) -> None:
    """Remove what an interrupted create left: no other create runs while we hold the lock."""
    for leftover in root.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _make(root: Path, asked: Facts) -> Facts:
    """Create the folder by one rename, which fails if something else is there."""
    fresh = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=root))
    target = root / asked["folder"]
    try:
        (fresh / "tmp").mkdir()
        _write(fresh, {**asked["facts"], "label": asked["label"], "created_at": time.time()})
        fresh.rename(target)
    except OSError as error:
        shutil.rmtree(fresh, ignore_errors=True)
        return {"refused": f"cannot create {target}: {error.strerror}"}
    return {"created": True}


def _kill_all(label: str) -> None:
    """Kill until two scans in a row find nothing: a process may fork during a scan.

    Each is killed as soon as it is found, so that it cannot fork again.
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
                pass  # already gone
        if time.monotonic() > ends:
            raise SystemExit(f"processes of {label} do not die: {list(_carriers(label))}")
        time.sleep(0.01)


def _carriers(label: str) -> Iterator[int]:
    """Every live process with the machine's label in its environment, except this one."""
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
    # A process that keeps forking and exiting is in no listing: it is found among the newer pids.
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
    """The newest pid; 0 if /proc shows only processes, as in some containers."""
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
    """Remove the folder; the description last, so that an interrupted removal is seen and completed."""
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
            _write(folder, facts)  # a new file appeared: it must still be destroyed
    raise SystemExit(f"{folder} fills as fast as it is emptied")


def _remove_one(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


if __name__ == "__main__":
    main(sys.argv[1:])
