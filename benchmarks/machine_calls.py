"""What home's calls cost the machine: processor time for each poll and for a job's life, and starts of Python.

Each is measured with one trackside that is kept running, and with a Python for each call, as where that is impossible.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import tempfile
from pathlib import Path

from _report import print_figure, report
from stationmaster.remote.host import Host
from stationmaster.remote.kept_trackside import KeptTrackside
from stationmaster.remote.local import LocalRemote
from stationmaster.remote.pyz import build_pyz

POLLS = 30
BUDGET_MILLISECONDS = 25.0
BUDGET_STARTS = 4
_TRAIN = "for i in range(600): print('step', i, flush=True); __import__('time').sleep(0.5)"


def main() -> int:
    for name, is_kept in (("a Python for each call", False), ("one trackside", True)):
        with tempfile.TemporaryDirectory() as folder:
            per_poll, whole, starts = asyncio.run(_life(Path(folder), is_kept=is_kept))
        if is_kept:
            report(f"machine, {name}: processor time per poll", per_poll, "ms", at_most=BUDGET_MILLISECONDS)
            report(f"machine, {name}: starts of Python by a job's calls", starts, "starts", at_most=BUDGET_STARTS)
        else:
            print_figure(f"machine, {name}: processor time per poll", per_poll, "ms")
            print_figure(f"machine, {name}: starts of Python by a job's calls", starts, "starts")
        print_figure(f"machine, {name}: processor time of a job's calls", whole, "ms")
    return 0


async def _life(folder: Path, *, is_kept: bool) -> tuple[float, float, int]:
    """Milliseconds per poll and for the calls of one job, and how many Pythons these started."""
    root, starts = folder / "job", folder / "starts"
    root.mkdir()
    remote = LocalRemote(root=folder, environment={"PATH": os.environ["PATH"]})
    kept = KeptTrackside(remote)
    host = Host(remote, root=str(root), python=_counted_python(folder, starts), kept=kept if is_kept else None)
    began = _used()
    await host.install(build_pyz(folder / "pyz"))
    await host.preflight(allocate=False)
    await host.put_plan(_plan())
    await host.hash(["plan.json", "recipe/train.py"])
    await host.visit(3600)
    await host.start()
    for _ in range(10):
        status = await host.status(alone_seconds=3600)
    await host.stop(5)
    await host.inventory()
    await host.acknowledge()
    await kept.close()
    whole, count = _used() - began, len(starts.read_text().split())
    assert status.started
    began = _used()
    await host.status(alone_seconds=3600)
    await kept.close()
    first = _used() - began
    began = _used()
    for _ in range(1 + POLLS):
        await host.status(alone_seconds=3600)
    await kept.close()
    return (_used() - began - first) / POLLS, whole, count


def _counted_python(folder: Path, starts: Path) -> str:
    python = folder / "python"
    python.write_text(f"#!/bin/sh\necho $$ >> '{starts}'\nexec '{sys.executable}' \"$@\"\n")
    python.chmod(0o755)
    return str(python)


def _plan() -> dict[str, object]:
    train = {"name": "train", "argv": [sys.executable, "-c", _TRAIN], "training": True}
    outputs = [{"pattern": "output/*.safetensors", "kind": "checkpoint"}]
    return {"format": 1, "job": "benchmark", "steps": [train], "outputs": outputs}


def _used() -> float:
    """Milliseconds of all calls that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (used.ru_utime + used.ru_stime)


if __name__ == "__main__":
    sys.exit(main())
