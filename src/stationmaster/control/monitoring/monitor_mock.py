"""Made-up machines for `monitor --mock`: nothing is rented, reached or read."""

from __future__ import annotations

import math
from collections.abc import Callable

from stationmaster.control.monitoring.instance_metrics import LOG_LINES
from stationmaster.control.monitoring.monitor import Sighting, Sightings
from stationmaster.money import MicroDollars

_EPOCHS = 3
_SECONDS_PER_STEP = 2.0


class MockSource:
    """Made-up trainings that advance with the clock, to try screens without an account."""

    _KINDS = (("RTX 4090", 467_000, 400), ("A100", 1_234_000, 1500), ("H100", 1_500_000, 3000))
    _IDS = ("30007012", "30007267", "30007268")

    def __init__(self, *, ids: tuple[str, ...] = (), clock: Callable[[], float]) -> None:
        self._ids = ids or self._IDS
        self._clock = clock
        self._began = clock() - 600.0

    async def machines(self) -> Sightings:
        return Sightings(machines=tuple(self._sighting(place) for place in range(len(self._ids))))

    async def log_tail(self, machine: Sighting) -> bytes:
        per_epoch = self._KINDS[self._ids.index(machine.id) % len(self._KINDS)][2]
        done = min(_EPOCHS * per_epoch, max(1, int((self._clock() - self._began) / _SECONDS_PER_STEP)))
        epoch, step = (done - 1) // per_epoch, (done - 1) % per_epoch + 1
        lines = [f"Epoch {epoch + 1}/{_EPOCHS}"]
        for each in range(max(1, step - LOG_LINES + 2), step + 1):
            loss = 2.0 + 3.0 * math.exp(-(epoch * per_epoch + each) / 300)
            lines.append(f"Step {each}/{per_epoch}: Loss = {loss:.3f}, LR = 0.0001")
        return "\n".join(lines).encode() + b"\n"

    async def close(self) -> None:
        """Nothing to close."""

    def _sighting(self, place: int) -> Sighting:
        gpu, price, _ = self._KINDS[place % len(self._KINDS)]
        swing = math.sin(self._clock() / 30 + place)
        return Sighting(
            id=self._ids[place],
            status="running",
            label=f"mock-{place + 1}",
            gpu_type=gpu,
            gpu_percent=round(70 + 20 * swing, 1),
            memory_percent=round(40 + 5 * swing, 1),
            cost_per_hour=MicroDollars(price),
            started_at=self._began,
        )
