"""Real runs of the tiny-lora trainer for tests: a small captioned image set, processes, and waiting for them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from PIL import Image, ImageDraw

from stationmaster.recipes.places import BUILTIN

TRAINER = BUILTIN / "tiny-lora" / "train.py"
_COLOURS = [(200, 60, 40), (40, 120, 200), (60, 170, 80), (230, 200, 60)]
_PATIENCE_SECONDS = 150.0
Found = TypeVar("Found")


def write_images(folder: Path, count: int = 12) -> Path:
    """Simple pictures of one shape each on a sloping ground, with captions."""
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(count):
        image = Image.linear_gradient("L").resize((96, 96)).convert("RGB")
        draw = ImageDraw.Draw(image)
        left, top = 8 + 5 * (index % 6), 10 + 7 * (index % 5)
        shape, colour = ("square", "circle")[index % 2], index % len(_COLOURS)
        draw.rectangle((0, 0, 96, 20 + 3 * index), fill=_COLOURS[(index + 1) % len(_COLOURS)])
        paint = draw.rectangle if shape == "square" else draw.ellipse
        paint((left, top, left + 40, top + 40), fill=_COLOURS[colour])
        image.save(folder / f"{index:02d}.png")
        (folder / f"{index:02d}.txt").write_text(f"[trigger] a {shape} number {colour}", encoding="utf-8")
    return folder


def command(dataset: Path, output: Path, *options: str) -> list[str]:
    """A run of 60 steps as fast as it can go, unless the options say otherwise."""
    fixed = ["--name=demo", "--trigger=sks", "--steps=60", "--seconds-per-step=0", "--save-every=20"]
    return [sys.executable, "-B", str(TRAINER), f"--dataset={dataset}", f"--output={output}", *fixed, *options]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a run ended, and both its streams in one text, as in a job's log."""

    returncode: int
    stdout: str


def train(dataset: Path, output: Path, *options: str, **environ: str) -> Finished:
    """Run to the end."""
    run = subprocess.run(
        command(dataset, output, *options),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **environ},
        timeout=120,
        check=False,
    )
    # decoded here: text mode would turn the carriage returns of redraws into line ends
    return Finished(returncode=run.returncode, stdout=run.stdout.decode("utf-8"))


class LiveRun:
    """A run in the background, killed at the end of the test if it is still there."""

    def __init__(self, dataset: Path, output: Path, *options: str) -> None:
        output.mkdir(parents=True, exist_ok=True)
        self.output = output
        self._log = output.parent / f"{output.name}.log"
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(command(dataset, output, *options), stdout=log, stderr=log)

    def __enter__(self) -> LiveRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def log(self) -> str:
        return self._log.read_bytes().decode("utf-8", "replace")

    def wait_until(self, condition: Callable[[], Found]) -> Found:
        """Wait for something that the run does, and what it came to; fails if it ends or takes a minute instead."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not (found := condition()):
            assert self.process.poll() is None, f"ended with {self.process.returncode}: {self.log()[-2000:]}"
            assert time.monotonic() < deadline, self.log()[-2000:]
            time.sleep(0.03)
        return found

    def ended(self) -> int:
        return self.process.wait(timeout=_PATIENCE_SECONDS)


def saved(output: Path) -> list[str]:
    """Names of the models in the output folder."""
    return sorted(path.name for path in output.glob("*.safetensors"))
