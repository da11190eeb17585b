"""The terminal app at a pseudo-terminal of 200×60, beside the simplest tables that others would write.

100 made-up machines that all change every second; the same machines at rest; 5 machines every 10 seconds; 100 machines
of a simulated Vast.ai. Beside them, in the same run: a plain Rich live table and a naive Textual table with the same
cells, `wandb leet` with a run of 100 metrics per second, and nvitop where there is a GPU.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import structlog

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from _counted_calls import counted_calls
from _report import did_not_run, print_figure, report
from _screen_costs import Costs, Press, Program, costs_of
from stationmaster.control.monitoring.fleet import Fleet
from stationmaster.control.monitoring.mock import DEFAULT_SEED, MockMachines
from stationmaster.errors import StationmasterError
from stationmaster.simulator.harness import simulator_thread
from tests.support.vast.simulated_vast import API_KEY, Customer, quick_settings
from trackers.environments import python_of, variables

MACHINES = 100
IDS = tuple(str(30_007_000 + number) for number in range(MACHINES))
CPU_PERCENT, IDLE_PERCENT = 5.0, 1.0
MEGABYTES_MIB = 70.0
FIRST_PAINT_SECONDS, KEY_SECONDS = 1.2, 0.1
COLLECT_SECONDS, RENDER_SECONDS = 0.2, 0.1
LISTS_PER_HOUR = 360.0
_SEED_MB = 50.0  # what was once promised for 5 machines every 10 seconds

_COMMAND = str(Path(sys.executable).with_name("stationmaster"))
_PEERS = Path(__file__).parent / "terminal_peers"
_WANDB, _NVITOP = ("wandb==0.31.0",), ("nvitop==1.7.2",)
_DOWN, _UP, _ESCAPE = "\x1b[B", "\x1b[A", "\x1b"
#: Each key is answered by something that only it causes: the row under the cursor, the list of keys, the table again.
_PRESSES = [
    Press(key=_DOWN, answer=IDS[1]),
    Press(key=_UP, answer=IDS[0]),
    Press(key="?", answer="Everywhere"),
    Press(key=_ESCAPE, answer=IDS[20]),
    Press(key="?", answer="Everywhere"),
    Press(key="?", answer=IDS[20]),
] * 7


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--seconds", type=float, default=30.0)
    options.add_argument("--without-peers", action="store_true")
    chosen = options.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))  # the simulator tells all it does
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours = _ours(folder, seconds=chosen.seconds)
        _few_machines(folder, seconds=chosen.seconds)
        _simulated_vast(folder, seconds=chosen.seconds)
        if not chosen.without_peers:
            _beside(folder, ours, seconds=chosen.seconds)
    return 0


def _ours(folder: Path, *, seconds: float) -> Costs:
    what = f"terminal app, {MACHINES} machines that change every second"
    program = _monitor(folder, "--mock", "--instances", ",".join(IDS), "--interval", "1")
    costs = costs_of(program, seconds=seconds, presses=_PRESSES, pause_key="p")
    assert costs.key_seconds is not None
    assert costs.idle_percent is not None
    collect = _collect_seconds()
    report(f"{what}: share of a core", costs.cpu_percent, "%", at_most=CPU_PERCENT)
    report(f"{what}: resident memory", costs.resident_mib, "MiB", at_most=MEGABYTES_MIB)
    print_figure(f"{what}: highest resident memory", costs.peak_mib, "MiB")
    report(f"{what}: key to screen, p95", 1000 * costs.key_seconds, "ms", at_most=1000 * KEY_SECONDS)
    report(f"{what}: first paint", costs.first_paint_seconds, "s", at_most=FIRST_PAINT_SECONDS)
    report(f"{what}: collect", collect, "s", at_most=COLLECT_SECONDS)
    report(f"{what}: render", max(0.0, costs.cpu_percent / 100 - collect), "s", at_most=RENDER_SECONDS)
    print_figure(f"{what}: written", costs.bytes_per_second, "bytes/s")
    report(f"terminal app, {MACHINES} machines, paused: share of a core", costs.idle_percent, "%", at_most=IDLE_PERCENT)
    return costs


def _few_machines(folder: Path, *, seconds: float) -> None:
    what = "terminal app, 5 machines every 10 s"
    costs = costs_of(_monitor(folder, "--mock", "--instances", ",".join(IDS[:5])), seconds=seconds)
    report(f"{what}: share of a core", costs.cpu_percent, "%", at_most=IDLE_PERCENT)
    report(f"{what}: resident memory", costs.resident_mib, "MiB", at_most=MEGABYTES_MIB)
    print_figure(
        f"{what}: resident memory, of the {_SEED_MB:g} MB once promised",
        costs.resident_mib * 1.048576 / _SEED_MB,
        "times",
    )


def _simulated_vast(folder: Path, *, seconds: float) -> None:
    """Machines of a simulated Vast.ai, which nobody can log in to: listed, judged and shown, without logs."""
    what = f"terminal app, {MACHINES} machines of a simulated Vast.ai"
    settings = quick_settings(folder / "simulator", backend="paper", hosts=4 * MACHINES, credit_usd=10_000.0)
    with simulator_thread(settings) as url, closing(Customer(url)) as customer, counted_calls(url) as (address, calls):
        offers = [offer["id"] for offer in customer.offers(limit=4 * MACHINES)]
        ids = [customer.rent(offer) for offer in offers[:MACHINES]]
        program = _monitor(folder, "--all", VASTAI_API_KEY=API_KEY, VASTAI_API_BASE_URL=address, shows=str(ids[0]))
        # A home is made once: what that needs is not part of what follows.
        subprocess.run([_COMMAND, "jobs"], env=_environ(folder), check=True, capture_output=True)
        before, began = _lists(calls), time.monotonic()
        costs = costs_of(program, seconds=max(45.0, seconds))
        took = time.monotonic() - began
        lists = _lists(calls) - before - 1  # the first one is the start
        pages = sum(calls.values())
    report(f"{what}: share of a core", costs.cpu_percent, "%", at_most=CPU_PERCENT)
    report(f"{what}: resident memory", costs.resident_mib, "MiB", at_most=MEGABYTES_MIB)
    report(f"{what}: first paint", costs.first_paint_seconds, "s", at_most=FIRST_PAINT_SECONDS)
    report(f"{what}: list calls", 3600 * lists / took, "per hour", at_most=LISTS_PER_HOUR)
    print_figure(f"{what}: requests for pages of these lists", 3600 * pages / took, "per hour")


def _beside(folder: Path, ours: Costs, *, seconds: float) -> None:
    environ = {**_environ(folder), "PYTHONPATH": str(_PEERS.parent)}
    for name, script in (("a plain Rich live table", "rich_live.py"), ("a naive Textual table", "naive_textual.py")):
        argv = [sys.executable, str(_PEERS / script), str(MACHINES), "1"]
        _compare(name, Program(argv=argv, environ=environ, shows=IDS[0], cwd=folder), ours, seconds=seconds)
    with _logged_run(folder) as argv:
        program = Program(argv=argv, environ=variables(folder), shows="machine/", cwd=folder)
        _compare("wandb leet, 100 metrics", program, ours, seconds=seconds)
    nvitop = str(Path(python_of(_NVITOP)).with_name("nvitop"))
    once = subprocess.run([nvitop, "--once"], env=_environ(folder), capture_output=True, text=True)
    if once.returncode:
        did_not_run("nvitop", (once.stdout + once.stderr).strip().splitlines()[0])
        return
    program = Program(argv=[nvitop, "--interval", "1"], environ=_environ(folder), shows="GPU", cwd=folder)
    _compare("nvitop, the GPUs of this computer", program, ours, seconds=seconds)


def _compare(name: str, program: Program, ours: Costs, *, seconds: float) -> None:
    theirs = costs_of(program, seconds=seconds)
    print_figure(f"{name}: share of a core", theirs.cpu_percent, "%")
    print_figure(f"{name}: resident memory", theirs.resident_mib, "MiB")
    print_figure(f"{name}: first paint", theirs.first_paint_seconds, "s")
    print_figure(f"{name}: written", theirs.bytes_per_second, "bytes/s")
    print_figure(f"terminal app, of {name}: share of a core", ours.cpu_percent / theirs.cpu_percent, "times")
    print_figure(f"terminal app, of {name}: resident memory", ours.resident_mib / theirs.resident_mib, "times")
    print_figure(f"terminal app, of {name}: written", ours.bytes_per_second / theirs.bytes_per_second, "times")


def _monitor(folder: Path, *words: str, shows: str = IDS[0], **environ: str) -> Program:
    return Program(argv=[_COMMAND, "monitor", *words], environ={**_environ(folder), **environ}, shows=shows, cwd=folder)


def _environ(folder: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "STATIONMASTER_HOME": str(folder / "home")}


def _collect_seconds() -> float:
    """Processor time of one look at all machines, whose logs have grown by the lines of a second."""
    now, looks = 1_800_000_000.0, 20

    async def look() -> float:
        nonlocal now
        machines = MockMachines(ids=IDS, clock=lambda: now, seed=DEFAULT_SEED)
        fleet = Fleet(warn=lambda _: None, wanted=IDS, made_up=True)
        began = 0.0
        for number in range(looks + 1):
            fleet.take_listing(await machines.machines(), now=now)
            for machine in fleet.readable():
                try:
                    fleet.take_log(machine.id, await machines.read(machine, fleet.position(machine.id)))
                except StationmasterError as problem:  # some of them play dead
                    fleet.take_log_problem(machine.id, str(problem))
            fleet.snapshot(now=now)
            now += 1.0
            began = began if number else time.process_time()  # the first one reads whole logs
        return (time.process_time() - began) / looks

    return asyncio.run(look())


def _lists(calls: Counter[str]) -> int:
    """Lists that were begun: one of 100 machines comes in pages of 25, each of which names the one before."""
    return sum(count for call, count in calls.items() if call.startswith("GET") and "after_token" not in call)


@contextmanager
def _logged_run(folder: Path) -> Iterator[list[str]]:
    """A run that logs while the block runs, and the command that shows it."""
    python = python_of(_WANDB)
    argv = [python, str(_PEERS / "logged_run.py"), str(MACHINES), "1"]
    run = subprocess.Popen(
        argv,
        env=variables(folder),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert run.stdout is not None
        while b"logging" not in run.stdout.readline():
            pass
        yield [str(Path(python).with_name("wandb")), "leet", str(folder / "wandb" / "latest-run")]
    finally:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()


if __name__ == "__main__":
    sys.exit(main())
