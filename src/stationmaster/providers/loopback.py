"""This computer as a provider: a machine is a folder and the processes with its label in their environment.

A machine may hold GPUs: no other machine gets them until it is destroyed, and its processes see no others.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from stationmaster.errors import NoCapacity, ProviderBusy
from stationmaster.estimate import hours_on
from stationmaster.event_log import get_logger
from stationmaster.model import (
    FoundGpus,
    Gpu,
    GpuMaker,
    Listing,
    LocalAccess,
    Machine,
    MachineStatus,
    Offer,
    Requirements,
)
from stationmaster.money import ZERO, MicroDollars
from stationmaster.offers import NoOffer, Ranking
from stationmaster.providers.labelled_processes import MACHINE_VARIABLE, kill_processes_of, processes_of
from stationmaster.providers.this_computer import (
    NAME,
    Inventory,
    candidates,
    rank_this_computer,
    waiting_reason,
    why_none,
)

log = get_logger("stationmaster.loopback")

_DESCRIPTION = "machine.json"
_HELD_GPUS = "gpus.json"  # stays until the last process is dead, when the description is gone already
_UNFINISHED = ".new-"
_UNFINISHED_SECONDS = 600.0
_GIB = 1024**3
_VARIABLES = {GpuMaker.NVIDIA: "CUDA_VISIBLE_DEVICES", GpuMaker.AMD: "HIP_VISIBLE_DEVICES"}

FindGpus = Callable[[], Awaitable[FoundGpus]]


async def no_gpus() -> FoundGpus:
    return FoundGpus()


class LoopbackProvider:
    """Machines in `folder`. The processes of a machine are found by its label in their environment."""

    name = NAME
    create_limit_seconds = 1.0  # a create is one atomic rename

    def __init__(
        self,
        folder: Path,
        *,
        environment: Mapping[str, str],
        find_gpus: FindGpus = no_gpus,
        python: str = sys.executable,
        price_per_hour: MicroDollars = ZERO,
    ) -> None:
        """`environment` is the whole environment of a machine's processes: put no secrets in it."""
        self._folder = folder
        self._environment = dict(environment)
        self._find_gpus = find_gpus
        self._python = python
        self._price_per_hour = price_per_hour

    async def offers(self, want: Requirements) -> list[Offer]:
        return [ranked.offer for ranked in (await self.ranking(want)).chosen]

    async def ranking(self, want: Requirements) -> Ranking:
        return rank_this_computer(await self._inventory(want), want, hours_on(want))

    async def why_no_offer(self, want: Requirements) -> NoOffer:
        return why_none(await self._inventory(want), want)

    async def waiting_reason(self, want: Requirements) -> str | None:
        return waiting_reason(await self._inventory(want), want) if want.gpus else None

    async def create(self, offer: Offer, *, label: str, want: Requirements) -> str:
        if (self._folder / label / _DESCRIPTION).exists():
            return label  # made by an earlier create whose answer was lost
        found = await self._found(want)
        try:
            with log.timed("provider.called", provider=self.name, call="create", label=label), self._alone():
                self._make(label, self._choose(offer, found, want))
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
            with log.timed("provider.called", provider=self.name, call="destroy", label=provider_id):
                await asyncio.to_thread(self._destroy, provider_id)

    async def _found(self, want: Requirements) -> FoundGpus:
        return await self._find_gpus() if want.gpus else FoundGpus()

    async def _inventory(self, want: Requirements) -> Inventory:
        return self._inventory_of(await self._found(want))

    def _inventory_of(self, found: FoundGpus) -> Inventory:
        self._folder.mkdir(parents=True, exist_ok=True)
        return Inventory(
            found=found,
            holders={gpu["id"]: label for label in self._labels() for gpu in self._held_gpus(label)},
            disk_free_gib=shutil.disk_usage(self._folder).free / _GIB,
            price_per_hour=self._price_per_hour,
        )

    def _choose(self, offer: Offer, found: FoundGpus, want: Requirements) -> tuple[Gpu, ...]:
        """Free GPUs like those of the offer. Raises ProviderBusy while jobs use them, and NoCapacity if none fits."""
        inventory = self._inventory_of(found)
        alike = [each for each in candidates(inventory, want) if each.offer.gpu == offer.gpu]
        if not alike:
            raise NoCapacity(why_none(inventory, want).why or "the GPU of the offer is gone")
        for candidate in alike:
            if all(inventory.is_free(gpu) for gpu in candidate.gpus):
                return candidate.gpus
        raise ProviderBusy(waiting_reason(inventory, want) or "every GPU like that of the offer is in use")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No two processes choose GPUs at the same time."""
        self._folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _make(self, label: str, gpus: tuple[Gpu, ...]) -> None:
        """Create the folder by one rename, so that a crash leaves a complete machine or none."""
        self._remove_unfinished()
        fresh = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=self._folder))
        try:
            for name in ("jobs", "tmp"):
                (fresh / name).mkdir()
            description = {"created_at": time.time(), "price_per_hour": self._price_per_hour}
            (fresh / _DESCRIPTION).write_text(json.dumps(description))
            held = [{"id": gpu.id, "maker": gpu.maker.value, "name": gpu.name} for gpu in gpus]
            (fresh / _HELD_GPUS).write_text(json.dumps(held))
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
        gpus = self._held_gpus(label)
        return Machine(
            provider_id=label,
            label=label,
            status=MachineStatus.RUNNING,
            created_at=created_at,
            price_per_hour=price,
            accesses=(self._access(root, label),),
            gpu=gpus[0]["name"] if gpus else None,
            gpus=len(gpus),
        )

    def _access(self, root: Path, label: str) -> LocalAccess:
        """PATH begins with the interpreter's folder, so that `python3` has the packages installed with us."""
        path = os.pathsep.join([str(Path(self._python).parent), self._environment.get("PATH", os.defpath)])
        environment = {**self._environment, "PATH": path, "TMPDIR": str(root / "tmp"), MACHINE_VARIABLE: label}
        environment |= self._visible_gpus(label)
        return LocalAccess(root=str(root), job_root=str(root / "jobs"), environment=tuple(environment.items()))

    def _visible_gpus(self, label: str) -> dict[str, str]:
        """The variables that hide the GPUs of others. A job that asked for no GPU sees none.

        Machines that older versions made see all, as before.
        """
        if not (self._folder / label / _HELD_GPUS).exists():
            return {}
        gpus = self._held_gpus(label)
        return {
            variable: ",".join(gpu["id"] for gpu in gpus if gpu["maker"] == maker.value)
            for maker, variable in _VARIABLES.items()
        }

    def _held_gpus(self, label: str) -> list[dict[str, str]]:
        try:
            held = json.loads((self._folder / label / _HELD_GPUS).read_text())
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return []
        return [gpu for gpu in held if isinstance(gpu, dict) and {"id", "maker", "name"} <= gpu.keys()]

    def _destroy(self, label: str) -> None:
        root = self._folder / label
        (root / _DESCRIPTION).unlink(missing_ok=True)  # from now on it is not usable
        kill_processes_of(label)
        _remove_tree(root)


def _is_machine_name(text: str) -> bool:
    """Whether it names a folder directly below ours: nothing else may be removed."""
    return bool(text) and not text.startswith(".") and Path(text).name == text


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
