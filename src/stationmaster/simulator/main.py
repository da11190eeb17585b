"""The blocking entry point for the command line: runs a simulator until SIGINT or SIGTERM."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

from stationmaster.simulator.cloud import Pace
from stationmaster.simulator.faults import read_faults
from stationmaster.simulator.server import Simulator, SimulatorSettings


def run(
    *,
    port: int,
    api_key: str,
    home: Path,
    seed: int = 1,
    backend: str = "process",
    faults: Path | None = None,
    credit_usd: float = 100.0,
    clock_speed: float = 1.0,
    rate_limit_scale: float = 1.0,
    pace: Pace | None = None,
    path: str = "/usr/local/bin:/usr/bin:/bin",
    keep: bool = False,
    ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve until SIGINT or SIGTERM; calls `ready` with the URL. Without `keep` all machines are then destroyed."""
    settings = SimulatorSettings(
        home=home,
        api_key=api_key,
        port=port,
        seed=seed,
        backend=backend,
        faults=tuple(read_faults(faults)) if faults is not None else (),
        credit_usd=credit_usd,
        clock_speed=clock_speed,
        rate_limit_scale=rate_limit_scale,
        pace=pace or Pace(),
        path=path,
        keep=keep,
    )
    asyncio.run(_serve(settings, ready))


async def _serve(settings: SimulatorSettings, ready: Callable[[str], None]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with Simulator(settings) as simulator:
        ready(simulator.url)
        await stop.wait()
