"""This computer as a provider: a machine is a folder and the processes with its label in their environment."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from stationmaster.errors import NoCapacity, ProviderFault
from stationmaster.model import Listing, LocalAccess, Machine, MachineStatus, Offer, Requirements
from stationmaster.money import ZERO, MicroDollars

MACHINE_VARIABLE = "STATIONMASTER_MACHINE"
_DESCRIPTION = "machine.json"
_UNFINISHED = ".new-"
_UNFINISHED_SECONDS = 600.0
_KILL_SECONDS = 10.0
_MOST_CHASES = 2000  # consecutive scans for new processes; each takes about ten microseconds
_GIB = 1024**3


class LoopbackProvider:
    """Machines in `folder`. The processes of a machine are found by its label in their environment."""

    name = "loopback"
    create_limit_seconds = 1.0  # a create is one atomic rename

    def __init__(
        self,
        folder: Path,
        *,
        environment: Mapping[str, str],
        python: str = sys.executable,
        price_per_hour: MicroDollars = ZERO,
    ) -> None:
        """`environment` is the whole environment of a machine's processes: put no secrets in it."""
        self._folder = folder
        self._environment = dict(environment)
        self._python = python
        self._price_per_hour = price_per_hour

    async def offers(self, want: Requirements) -> list[Offer]:
        if want.gpus or self._price_per_hour > (want.max_price_per_hour or self._price_per_hour):
            return []
        self._folder.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(self._folder).free < want.disk_gib * _GIB:
            return []
        return [Offer(id="this-computer", provider=self.name, price_per_hour=self._price_per_hour)]

    async def create(self, offer: Offer, *, label: str, want: Requirements) -> str:
        try:
            self._make(label)
        except OSError as problem:
            raise NoCapacity(f"cannot create a machine in {self._folder}: {problem.strerror}") from problem
        return label

    async def listing(self) -> Listing:
        machines = [machine for label in self._labels() if (machine := self._machine(label)) is not None]
        return Listing(machines=tuple(machines), complete=True, account=self.name)

    async def describe(self, provider_id: str) -> Machine | None:
        if not _is_machine_name(provider_id):
            return None
        machine = self._machine(provider_id)
        if machine is not None:
            return machine
        left = await asyncio.to_thread(processes_of, provider_id)
        return _half_gone(provider_id) if left else None

    async def destroy(self, provider_id: str) -> None:
        if _is_machine_name(provider_id):
            await asyncio.to_thread(self._destroy, provider_id)

    def _make(self, label: str) -> None:
        """Create the folder by one rename, so that a crash leaves a complete machine or none."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._remove_unfinished()
        fresh = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=self._folder))
        try:
            for name in ("jobs", "tmp"):
                (fresh / name).mkdir()
            description = {"created_at": time.time(), "price_per_hour": self._price_per_hour}
            (fresh / _DESCRIPTION).write_text(json.dumps(description))
            fresh.rename(self._folder / label)
        except OSError:
            shutil.rmtree(fresh, ignore_errors=True)
            if not (self._folder / label / _DESCRIPTION).exists():  # else an earlier create succeeded
                raise

    def _remove_unfinished(self) -> None:
        """Remove folders of creates that were killed; a recent one may still be in progress."""
        for unfinished in self._folder.glob(f"{_UNFINISHED}*"):
            with suppress(FileNotFoundError):
                if time.time() - unfinished.stat().st_mtime > _UNFINISHED_SECONDS:
                    shutil.rmtree(unfinished, ignore_errors=True)

    def _labels(self) -> list[str]:
        if not self._folder.is_dir():
            return []
        return sorted(path.name for path in self._folder.iterdir() if path.is_dir() and not path.name.startswith("."))

    def _machine(self, label: str) -> Machine | None:
        root = self._folder / label
        try:
            description = json.loads((root / _DESCRIPTION).read_text())
            created_at, price = float(description["created_at"]), MicroDollars(description["price_per_hour"])
        except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
            return _half_gone(label) if root.is_dir() else None
        return Machine(
            provider_id=label,
            label=label,
            status=MachineStatus.RUNNING,
            created_at=created_at,
            price_per_hour=price,
            accesses=(self._access(root, label),),
        )

    def _access(self, root: Path, label: str) -> LocalAccess:
        """PATH begins with the interpreter's folder, so that `python3` has the packages installed with us."""
        path = os.pathsep.join([str(Path(self._python).parent), self._environment.get("PATH", os.defpath)])
        environment = {**self._environment, "PATH": path, "TMPDIR": str(root / "tmp"), MACHINE_VARIABLE: label}
        return LocalAccess(root=str(root), job_root=str(root / "jobs"), environment=tuple(environment.items()))

    def _destroy(self, label: str) -> None:
        root = self._folder / label
        (root / _DESCRIPTION).unlink(missing_ok=True)  # from now on it is not usable
        _kill_all(label)
        _remove_tree(root)


def _is_machine_name(text: str) -> bool:
    """Whether it names a folder directly below ours: nothing else may be removed."""
    return bool(text) and not text.startswith(".") and Path(text).name == text


def processes_of(label: str) -> list[int]:
    """Every live process with the machine's label in its environment, except this one.

    A process group is not enough: trackside and trainers start their own sessions.
    """
    return list(_carriers(label))


def _carriers(label: str) -> Iterator[int]:
    wanted = f"{MACHINE_VARIABLE}={label}".encode()
    for pid, environment in _environments():
        if wanted in environment and pid != os.getpid():
            yield pid


def _environments() -> Iterator[tuple[int, list[bytes]]]:
    if not Path("/proc/self/environ").exists():
        yield from _environments_by_ps()
        return
    newest = _newest_pid()
    entries = os.listdir("/proc")  # noqa: PTH208 (names only; a Path for each would double the cost)
    yield from _environments_of(int(entry) for entry in entries if entry.isdigit())
    # A process that keeps forking and exiting is in no listing: it is found among the newer pids.
    for _ in range(_MOST_CHASES):
        known, newest = newest, _newest_pid()
        if newest <= known:
            return
        yield from _environments_of(range(known + 1, newest + 1))


def _environments_of(pids: Iterable[int]) -> Iterator[tuple[int, list[bytes]]]:
    for pid in pids:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
                yield pid, file.read().split(b"\0")
        except OSError:  # it has ended, or belongs to another user
            continue


def _newest_pid() -> int:
    """The newest pid; 0 if /proc shows only processes, as in some containers."""
    try:
        return int(Path("/proc/loadavg").read_bytes().split()[-1])
    except OSError:
        return 0


def _environments_by_ps() -> Iterator[tuple[int, list[bytes]]]:
    listed = subprocess.run(["ps", "eww", "-ax", "-o", "pid=,command="], capture_output=True, check=True).stdout
    for line in listed.splitlines():
        pid, _, words = line.strip().partition(b" ")
        yield int(pid), words.split(b" ")


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
            raise ProviderFault(f"processes of {label} do not die: {processes_of(label)}")
        time.sleep(0.01)


def _remove_tree(root: Path) -> None:
    """Remove the folder; retries, because a dying process may still create a file."""
    for _ in range(5):
        shutil.rmtree(root, ignore_errors=True)
        if not root.exists():
            return
        time.sleep(0.05)
    shutil.rmtree(root)


def _half_gone(label: str) -> Machine:
    return Machine(
        provider_id=label,
        label=label,
        status=MachineStatus.FAILED,
        created_at=0.0,
        message="damaged, or being destroyed",
    )
