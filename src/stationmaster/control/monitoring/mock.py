"""Made-up machines for `monitor --mock`: nothing is rented, reached or read. Every state that a face shows occurs."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

from stationmaster.control.monitoring.sources import LogPiece, LogPosition, Sighting, Sightings
from stationmaster.errors import Unreachable
from stationmaster.model import SshAccess
from stationmaster.money import MicroDollars

DEFAULT_SEED = 4090
_FIRST_ID = 30007012
_MOST_LINES = 500
_FIRST_LINES = 20  # and the line of their epoch, however long ago that was
_KINDS = (("RTX 4090", 467_000), ("A100 SXM4", 1_234_000), ("H100 NVL", 1_500_000), ("RTX 3090", 198_000))


class Role(StrEnum):
    """What a made-up machine does for as long as it exists."""

    TRAINING = "training"
    IDLE = "idle"
    OVERUSED = "overused"
    DIVERGING = "diverging"
    EXITED = "exited"
    LOADING = "loading"
    CREATED = "created"
    STALLED = "stalled"  # runs, but its log stands still
    SILENT = "silent"  # runs, but does not answer over SSH
    GONE = "gone"  # listed at first, then no more
    NO_LOSS = "no-loss"
    FINISHED = "finished"
    CHANGING = "changing"  # healthy, idle, exited, loading, and healthy again


_ROLES = (Role.TRAINING, Role.TRAINING, Role.TRAINING, *(role for role in Role if role is not Role.TRAINING))
_CYCLE = ((60.0, "running", 80.0), (60.0, "running", 4.0), (30.0, "exited", None), (20.0, "loading", None))
"""Seconds, status and load of each part of a changing machine's time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    id: str
    role: Role
    gpu: str
    price: int
    began: float
    steps_per_second: float
    steps_per_epoch: int
    epochs: int
    phase: float  # shifts its waves, so that no two machines move alike

    @property
    def lines_per_epoch(self) -> int:
        return self.steps_per_epoch + 1

    @property
    def lines(self) -> int:
        return self.lines_per_epoch * self.epochs


class MockMachines:
    """A listing and its logs. Trainings advance with the clock; the same seed gives the same machines."""

    def __init__(self, *, clock: Callable[[], float], ids: tuple[str, ...] = (), seed: int = DEFAULT_SEED) -> None:
        """The first three machines train; others take the further roles in turn, then train."""
        names = ids or tuple(str(_FIRST_ID + 97 * place) for place in range(len(_ROLES)))
        self._clock = clock
        self._machines = {name: _made(name, place, seed, now=clock()) for place, name in enumerate(names)}
        self._listings = 0

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self._machines)

    async def machines(self) -> Sightings:
        now = self._clock()
        self._listings += 1
        return Sightings(
            machines=tuple(
                _sighting(made, now=now)
                for made in self._machines.values()
                if made.role is not Role.GONE or self._listings == 1
            )
        )

    async def read(self, machine: Sighting, since: LogPosition | None) -> LogPiece:
        made = self._machines[machine.id]
        if made.role is Role.SILENT:
            raise Unreachable(f"{_host(made)}:22 did not answer within 8 s; its state is unknown")
        run, written = _written(made, now=self._clock())
        file = f"run-{run}/training.log"
        continues = since is not None and since.file == file
        if since is not None and continues:
            lines = _lines(made, run, max(since.offset, written - _MOST_LINES), written)
        else:
            epoch = _start_of_epoch(made, written)
            lines = chain(
                _lines(made, run, epoch, min(epoch + 1, written)),
                _lines(made, run, max(epoch + 1, written - _FIRST_LINES), written),
            )
        data = "".join(f"{line}\n" for line in lines).encode()
        return LogPiece(data=data, position=LogPosition(file=file, offset=written), continues=continues)

    async def forget(self, machine_id: str) -> None:
        """Nothing is open."""

    async def close(self) -> None:
        """Nothing is open."""


def _made(name: str, place: int, seed: int, *, now: float) -> _Made:
    dice = random.Random(f"{seed}:{name}")  # made-up values
    gpu, price = dice.choice(_KINDS)
    speed, steps, epochs = dice.uniform(1.0, 1.5), dice.randrange(100, 300), dice.randrange(8, 13)
    return _Made(
        id=name,
        role=_ROLES[place] if place < len(_ROLES) else Role.TRAINING,
        gpu=gpu,
        price=price + dice.randrange(0, 40) * 1000,
        began=now - dice.uniform(0.1, 0.7) * steps * epochs / speed,
        steps_per_second=speed,
        steps_per_epoch=steps,
        epochs=epochs,
        phase=dice.uniform(0.0, 2 * math.pi),
    )


def _sighting(made: _Made, *, now: float) -> Sighting:
    status, load = _status(made, now=now)
    runs = status == "running"
    return Sighting(
        id=made.id,
        status=status,
        label=f"mock-{made.role}",
        gpu_type=made.gpu,
        gpu_percent=None if load is None else round(min(100.0, load * (1 + 0.02 * math.sin(now / 7 + made.phase))), 1),
        gpu_celsius=round(62 + 8 * math.sin(now / 90 + made.phase)) if runs else None,
        memory_percent=round(45 + 20 * math.sin(made.phase) + math.sin(now / 11 + made.phase), 1) if runs else None,
        cost_per_hour=MicroDollars(made.price if runs else made.price // 50),
        started_at=made.began,
        accesses=(SshAccess(host=_host(made), port=22, user="root", job_root=""),) if runs else (),
    )


def _status(made: _Made, *, now: float) -> tuple[str, float | None]:
    """Status, and load of the GPU in percent."""
    match made.role:
        case Role.IDLE | Role.STALLED | Role.FINISHED:
            return "running", 2.0
        case Role.OVERUSED:
            return "running", 98.5
        case Role.EXITED | Role.LOADING | Role.CREATED:
            return made.role.value, None
        case Role.CHANGING:
            passed = (now - made.began) % sum(seconds for seconds, _, _ in _CYCLE)
            for seconds, status, load in _CYCLE:
                if passed < seconds:
                    return status, load
                passed -= seconds
    return "running", 75.0 + 10.0 * math.sin(made.phase)


def _host(made: _Made) -> str:
    return f"mock-{made.id}.invalid"


def _written(made: _Made, *, now: float) -> tuple[int, int]:
    """Which run the machine is at, and how many lines that has written."""
    if made.role is Role.STALLED:
        return 0, made.lines_per_epoch * 2 + 37
    if made.role is Role.FINISHED:
        return 0, made.lines + 1
    run, passed = divmod(max(0.0, now - made.began), (made.lines + 60) / made.steps_per_second)
    return int(run), min(made.lines + 1, 1 + int(passed * made.steps_per_second))


def _start_of_epoch(made: _Made, written: int) -> int:
    return max(0, min(written, made.lines) - 1) // made.lines_per_epoch * made.lines_per_epoch


def _lines(made: _Made, run: int, first: int, end: int) -> Iterator[str]:
    for number in range(first, end):
        epoch, step = divmod(number, made.lines_per_epoch)
        if number >= made.lines:
            yield "Training complete. Model saved to output/model.safetensors"
        elif step == 0:
            yield f"Epoch {epoch + 1}/{made.epochs}"
        elif made.role is Role.NO_LOSS:
            yield f"INFO [worker] cached {step} of {made.steps_per_epoch} images"
        else:
            yield f"Step {step}/{made.steps_per_epoch}: Loss = {_loss(made, number):.3f}, LR = 0.0001"


def _loss(made: _Made, number: int) -> float:
    wave = 0.05 * math.sin(number / 9 + made.phase)
    if made.role is Role.DIVERGING:
        return 12.0 + 3 * wave + number / made.lines
    return 0.15 + 1.2 * math.exp(-3 * number / made.lines) + wave
