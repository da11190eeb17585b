"""A training that a person starts by hand: a small script under nohup, which waits where a test wants it to."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.killing import kill
from tests.support.machines.own_hosts import is_alive
from tests.support.waiting import until

SCRIPT = """
import json, os, struct, sys, time

folder, total = sys.argv[1], int(sys.argv[2])
gone_on_at = time.time() + float(sys.argv[3])
waits_at, pace_seconds = int(sys.argv[4]), float(sys.argv[5])

def save(name):
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    path = os.path.join(folder, "out", name)
    with open(path + ".part", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + struct.pack("<f", 0.5))
    os.replace(path + ".part", path)

for step in range(1, total + 1):
    bar = f"{step * 100 // total:3d}%|#| {step}/{total} [00:{step:02d}<00:10, 1.00it/s, loss={1 / step:.4f}]"
    print(f"steps: {bar}", flush=True)
    if step == waits_at:
        save(f"cats-{step:06d}.safetensors")
        while not os.path.exists(os.path.join(folder, "go")) and time.time() < gone_on_at:
            time.sleep(0.05)
        if os.path.exists(os.path.join(folder, "crash")):
            raise RuntimeError("CUDA out of memory")
    time.sleep(pace_seconds)
save("cats.safetensors")
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandStarted:
    folder: Path
    pid: int

    @property
    def words(self) -> tuple[str, ...]:
        """The options of `adopt` that name it."""
        folder = self.folder
        return ("--log", f"{folder}/logs/*.log", "--pid-file", f"{folder}/pid", "--output", f"{folder}/out")

    @property
    def has_begun(self) -> bool:
        """Whether it has written to its log, which the shell's child opens at some time after the shell has ended."""
        log = self.folder / "logs/run.log"
        return log.exists() and log.stat().st_size > 0

    @property
    def is_alive(self) -> bool:
        return is_alive(self.pid)

    def go_on(self) -> None:
        """Let it run past the step at which it waits."""
        (self.folder / "go").touch()

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted((self.folder / "out").iterdir())}


def shell_words(*, steps: int = 20, waits_at: int = 5, waits_seconds: float = 600.0, pace_seconds: float = 0.01) -> str:
    """What a person types to start it in a folder that has train.py, logs and out."""
    words = f'{shlex.quote(sys.executable)} train.py "$PWD" {steps} {waits_seconds} {waits_at} {pace_seconds}'
    return f"(nohup {words} > logs/run.log 2>&1 < /dev/null & echo $! > pid)"


def setup_words(folder: str) -> str:
    """What a person types to make that folder."""
    return f"mkdir -p {folder}/logs {folder}/out && cd {folder} && cat > train.py <<'END'\n{SCRIPT}\nEND\n"


@contextmanager
def hand_started(
    folder: Path, *, steps: int = 20, waits_at: int = 5, pace_seconds: float = 0.01
) -> Iterator[HandStarted]:
    """Started by a shell that is gone; ended with the block, if it still runs."""
    for name in ("logs", "out"):
        (folder / name).mkdir(parents=True)
    (folder / "train.py").write_text(SCRIPT)
    words = shell_words(steps=steps, waits_at=waits_at, pace_seconds=pace_seconds)
    subprocess.run(["/bin/sh", "-c", words], cwd=folder, check=True)
    training = HandStarted(folder=folder, pid=int((folder / "pid").read_text()))
    try:
        until(lambda: training.has_begun, "the first line of its log")
        yield training
    finally:
        kill(training.pid)
