"""The same plans on the real trackside and on the fake one."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stationmaster.remote.fake import FakeRemote
from stationmaster.remote.fake_run import Script, safetensors_bytes
from stationmaster.remote.fake_trackside import FakeTrackside
from stationmaster.remote.host import Host
from stationmaster.remote.local import LocalRemote
from stationmaster.remote.pyz import build_pyz
from stationmaster.remote.status import Status
from tests.support.machines.trackside_bench import trackside_server

_TRAIN = {
    "ends well": "echo Running 1 job; printf '\\r1/2'; printf '\\r2/2\\n'; cp ../model ../output/cat.safetensors",
    "fails once": "mkdir ../tried && exit 3; cp ../model ../output/cat.safetensors",
    "fails always": "echo no; exit 3",
    "cannot pass": "printf 'Traceback (most recent call last):\\n  File \"x\", line 1\\nKeyError: rank\\n'; exit 1",
    "goes on": "echo begun; cp ../model ../output/cat_000000050.safetensors; exec sleep 600",
    "waits for a sign": "while [ ! -e ../sign ]; do sleep 0.05; done; cp ../model ../output/cat.safetensors",
    "says much": "head -c 100000 /dev/zero | tr '\\0' 'x'; cp ../model ../output/cat.safetensors",
}

_SCRIPTS = {
    "ends well": Script(measured=True),
    "fails once": Script(exit_codes={("train", 1): 3}, fails_at=1),
    "fails always": Script(exit_codes={("train", 1): 3, ("train", 2): 3}, fails_at=1),
    "cannot pass": Script(
        exit_codes={("train", 1): 1},
        fails_at=1,
        last_words='Traceback (most recent call last):\n  File "x", line 1\nKeyError: rank',
        cannot_pass=True,
    ),
    "goes on": Script(hangs_at=60),
    "waits for a sign": Script(training_steps=200),
    "says much": Script(training_steps=1000),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolBench:
    """One job's folder with trackside in it; its name selects how the training behaves."""

    kind: str
    host: Host
    training: str
    local: Path
    starts_of: Callable[[str], int]
    kill_supervisor: Callable[[Status], None]

    async def prepare(self, **changes: Any) -> None:
        """Trackside and the plan are there."""
        await self.host.install(build_pyz(self.local / "pyz"))
        (self.local / "model").write_bytes(safetensors_bytes(100))
        await self.host.remote.push(self.local / "model", self.host.path("model"))
        await self.host.put_plan({**plan(self.training), **changes})


def plan(training: str, *, secrets: tuple[str, ...] = ()) -> dict[str, Any]:
    """Three steps, of which the second trains; each notes that it was started."""
    return {
        "format": 1,
        "job": "cat",
        "attempt": 1,
        "steps": [
            _step("check", "true"),
            {
                **_step("train", _TRAIN[training]),
                "training": True,
                "tries": 2,
                "backoff_seconds": [0.05],
                "expect": ["output/cat.safetensors"],
                "secrets": list(secrets),
            },
            _step("report", "true"),
        ],
        "outputs": [{"pattern": "output/*.safetensors", "kind": "checkpoint"}],
        "stop_grace_seconds": 5.0,
        "from_a_newer_home": True,
    }


@contextmanager
def real_bench(folder: Path, training: str) -> Iterator[ProtocolBench]:
    root = folder / "job"
    root.mkdir()
    remote = LocalRemote(root=folder, environment={"PATH": os.environ["PATH"]})
    yield ProtocolBench(
        kind="real",
        host=Host(remote, root=str(root), python=trackside_server().python),
        training=training,
        local=folder,
        kill_supervisor=lambda status: os.kill(status.supervisor.pid or 0, signal.SIGKILL),
        starts_of=lambda name: (root / "work" / f"{name}.starts").read_text().count("x"),
    )


@contextmanager
def fake_bench(folder: Path, training: str) -> Iterator[ProtocolBench]:
    remote = FakeRemote()
    trackside = FakeTrackside(remote, script=_SCRIPTS[training], tick_seconds=30.0, python="python3")
    yield ProtocolBench(
        kind="fake",
        host=Host(remote, root="/jobs/cat"),
        training=training,
        local=folder,
        kill_supervisor=lambda status: trackside.run().kill_supervisor(status.wall),
        starts_of=lambda name: sum(n for (step, _), n in trackside.run().tries_started.items() if step == name),
    )


def _step(name: str, script: str) -> dict[str, Any]:
    return {"name": name, "argv": ["/bin/sh", "-c", f"printf x >> {name}.starts; mkdir -p ../output; {script}"]}
