"""A simulator for tests: in a thread, or in its own process, which can be killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import structlog

from stationmaster.simulator.clock import Clock
from stationmaster.simulator.cloud import Pace
from stationmaster.simulator.main import run
from stationmaster.simulator.server import Simulator, SimulatorSettings


@contextlib.contextmanager
def simulator_thread(settings: SimulatorSettings, *, clock: Clock | None = None) -> Iterator[str]:
    """The URL of a simulator that runs in a thread until the block ends."""
    ready = threading.Event()
    state: dict[str, Any] = {}

    async def serve() -> None:
        stop = asyncio.Event()
        async with Simulator(settings, clock=clock) as simulator:
            state.update(url=simulator.url, stop=stop, loop=asyncio.get_running_loop())
            ready.set()
            await stop.wait()

    def work() -> None:
        try:
            asyncio.run(serve())
        except BaseException as problem:  # noqa: BLE001  # passed to the waiting thread
            state["problem"] = problem
        finally:
            ready.set()

    thread = threading.Thread(target=work, name="simulator")
    thread.start()
    ready.wait()
    try:
        if "problem" not in state:
            yield state["url"]
    finally:
        if "loop" in state and thread.is_alive():
            state["loop"].call_soon_threadsafe(state["stop"].set)
        thread.join()
    if "problem" in state:
        raise state["problem"]


class SimulatorProcess:
    """A simulator in its own process, which can be killed and restarted on the same home."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        """`arguments` are those of `simulator.main.run`, as JSON values."""
        self._arguments = dict(arguments)
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    def start(self) -> str:
        """Start it and return its URL, which stays the same after restarts."""
        code = "import json,sys; from stationmaster.simulator.harness import serve; serve(json.loads(sys.argv[1]))"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, json.dumps(self._arguments)], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        if not self.url:
            raise RuntimeError(f"the simulator exited with code {self._process.wait()}")
        self._arguments["port"] = int(self.url.rsplit(":", 1)[1])
        return self.url

    def kill(self) -> None:
        """Kill it, as a power cut would."""
        self._end(hard=True)

    def stop(self) -> None:
        """Terminate it and wait."""
        self._end(hard=False)

    def _end(self, *, hard: bool) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if hard:
            process.kill()
        else:
            process.terminate()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def serve(arguments: Mapping[str, Any]) -> None:
    """The entry point of `SimulatorProcess`: prints the URL on the first line, then serves."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    values = dict(arguments)
    for name in ("home", "faults"):
        if values.get(name) is not None:
            values[name] = Path(values[name])
    if "pace" in values:
        values["pace"] = Pace(**values["pace"])
    run(**values, ready=lambda url: print(url, flush=True))
