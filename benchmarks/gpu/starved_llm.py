"""A language model trained with a starved GPU, what the analysis says of it, and the next runs with its advice.

    PYTHONPATH=src:SITE python3 benchmarks/gpu/starved_llm.py [--site BUNDLE] [--trial]

The first run has a batch of one row, no packing and slow data: rows are prepared while the training runs, in the
training's own process, and every second row is a long document that does not fit the context and is skipped once it is
tokenised. Then `stationmaster analyze` judges it, and `stationmaster retry --apply-recommendations` makes the next
runs: one with the advice about workers alone, one with all of it. Everything runs in a home of its own with this
computer as the machine. Prints the reports, and one JSON line for each run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml
from llm_lora import MAKE_MODEL, SHAPES, WORDS  # type: ignore[import-not-found, unused-ignore]

from stationmaster.control.worker.background import running_worker
from stationmaster.recipes.places import BUILTIN
from stationmaster.store.engine import Database
from stationmaster.store.store import Store

CONTEXT = 1024
IDLE_PERCENT = 10.0  # a GPU that is busy for no more than this waits
WARMUP = 3  # steps that are not counted
STARVED, WORKERS, ALL = "starved", "workers", "all"
_LOOK_SECONDS = 1.0

#: Tokens that the loader gives in so many batches: of packs only the loader knows how full they are.
COUNT_TOKENS = """
import json, sys
from itertools import islice
from pathlib import Path
from rows import find_places
from streaming import Source, streamed
from torch.utils.data import DataLoader
from transformers import AutoTokenizer

model, folder, wanted = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
source = Source(find_places(folder), AutoTokenizer.from_pretrained(model), wanted["context"], wanted["seed"],
                wanted["packing"])
batches = DataLoader(streamed(source, wanted["workers"]), batch_size=wanted["batch_size"],
                     num_workers=wanted["workers"], collate_fn=lambda rows: sum(len(row["input_ids"]) for row in rows))
print(sum(islice(batches, wanted["skipped"], wanted["steps"])))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large everything is."""

    shape: str
    rows: int
    document_words: int
    steps: int
    seconds: float
    """How long a later run trains before it is stopped; its steps are as many as those of the first."""


FULL = Size(shape="181M", rows=160, document_words=120_000, steps=300, seconds=35.0)
TRIAL = Size(shape="tiny", rows=24, document_words=20_000, steps=60, seconds=15.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One run: what it did per second between its first counted step and its last, and how busy the GPU was then."""

    run: str
    parameters: Mapping[str, Any]
    outcome: str
    health: str
    steps: int
    seconds: float
    tokens_per_second: float
    tokens_per_step: float
    gpu_samples: int
    idle_share: float | None
    gpu_busy_mean: float | None
    idle_dollars_per_hour: float | None
    peak_gpu_gb: float | None


class Home:
    """A home of Stationmaster's own, with this computer as its machine."""

    def __init__(self, folder: Path, price: float) -> None:
        self.folder, self.path = folder, folder / "home"
        self._environment = {
            **os.environ,
            "HOME": str(folder),
            "STATIONMASTER_HOME": str(self.path),
            "STATIONMASTER_RECIPES": str(folder / "recipes"),
            "STATIONMASTER_LOOPBACK__PRICE_PER_HOUR": str(price),
            "STATIONMASTER_MONITORING__SAMPLE_INTERVAL_SECONDS": "1",
            "STATIONMASTER_MONITORING__POLL_INTERVAL": "2",
            "STATIONMASTER_WORKER__LINGER": "5s",
        }

    def run(self, *words: str) -> str:
        """Run a command of Stationmaster's; returns what it prints. Ends the benchmark if it fails."""
        ran = self.ran(*words)
        if ran.returncode:
            raise SystemExit(f"stationmaster {' '.join(words)}: exit code {ran.returncode}\n{ran.stdout}{ran.stderr}")
        return ran.stdout

    def ran(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "stationmaster", *words]
        return subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)

    def end_worker(self) -> None:
        found = running_worker(self.path)
        if found is not None and found.pid:
            os.kill(found.pid, signal.SIGTERM)


def main(arguments: list[str]) -> int:
    """Train starved, analyse, apply the advice and train again."""
    options = _parser().parse_args(arguments)
    size = TRIAL if options.trial else FULL
    with tempfile.TemporaryDirectory(prefix="starved-", dir=options.scratch) as made:
        scratch = Path(made)
        home = Home(scratch, options.price)
        try:
            return _measure_all(home, Trainer(scratch, options), size, options)
        finally:
            home.end_worker()
            if options.keep:
                shutil.copy(home.path / "stationmaster.db", options.keep)


class Trainer:
    """The Python that trains, with the packages of the bundle, and what it trains on."""

    def __init__(self, scratch: Path, options: argparse.Namespace) -> None:
        self._scratch = scratch
        self._site = options.site
        self.python = scratch / "python"
        paths = [str(options.site.resolve())] if options.site else []
        path = ":".join([*paths, "$PYTHONPATH"])
        libraries = os.environ.get("LD_LIBRARY_PATH", "")  # a machine's processes get few variables of ours
        variables = f'PYTHONPATH="{path}" LD_LIBRARY_PATH="{libraries}"'
        self.python.write_text(f'#!/bin/sh\n{variables} exec {shutil.which(options.python)} "$@"\n')
        self.python.chmod(0o755)

    def make_model(self, shape: str) -> Path:
        folder = self._scratch / "model"
        self.run(MAKE_MODEL, str(folder), json.dumps(SHAPES[shape]), str(WORDS))
        return folder

    def count_tokens(self, model: Path, rows: Path, wanted: Mapping[str, Any]) -> int:
        return int(self.run(COUNT_TOKENS, str(model), str(rows), json.dumps(wanted)).split()[-1])

    def run(self, program: str, *words: str) -> str:
        environment = {
            **os.environ,
            "PYTHONPATH": str(BUILTIN / "llm-lora"),
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
        }
        command = [str(self.python), "-c", program, *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr)
        return done.stdout


def _measure_all(home: Home, trainer: Trainer, size: Size, options: argparse.Namespace) -> int:
    _change_recipe(home.folder / "recipes", has_gpu=not options.trial)
    model = trainer.make_model(size.shape)
    rows, quick = home.folder / "rows", home.folder / "quick"
    _write_rows(rows, quick, size)
    given = {
        "base_model": model, "python": trainer.python, "steps": size.steps, "batch_size": 1, "packing": False,
        "prepare": "during", "workers": 0, "context": CONTEXT, "save_every": 1_000_000,
    }  # fmt: skip
    words = [word for name, value in given.items() for word in ("-p", f"{name}={value}")]
    dataset = ("--provider", "loopback", "--dataset", str(rows))
    home.run("train", "--recipe", "llm-lora@2", *dataset, "--name", "starved", "--id", STARVED, "--yes", *words)
    home.ran("watch", STARVED)
    print(home.run("analyze", STARVED), flush=True)
    _print(_measured(home, trainer, STARVED, model, quick, options.price))
    for job, only in ((WORKERS, ("--only", "workers")), (ALL, ())):
        ran = home.ran("retry", STARVED, "--apply-recommendations", *only, "--id", job, "--yes")
        print(f"{ran.stdout}{ran.stderr}", flush=True)
        if ran.returncode:
            return 1
        _train_for(home, job, size.seconds)
        print(home.run("analyze", job), flush=True)
        _print(_measured(home, trainer, job, model, quick, options.price))
    return 0


def _train_for(home: Home, job: str, seconds: float) -> None:
    """Wait until the job has trained for so long, or has ended; then stop it."""
    store = Store(Database(f"sqlite:///{home.path}/stationmaster.db"))
    began: float | None = None
    while store.jobs.get(job).outcome is None and (began is None or time.monotonic() - began < seconds):
        time.sleep(_LOOK_SECONDS)
        if began is None and store.jobs.get(job).progress.step:
            began = time.monotonic()
    store.close()
    home.ran("stop", job)
    home.ran("watch", job)


def _measured(home: Home, trainer: Trainer, job_id: str, model: Path, quick: Path, price: float) -> Measured:
    store = Store(Database(f"sqlite:///{home.path}/stationmaster.db"))
    job = store.jobs.get(job_id)
    steps = sorted(_rows(store, job_id, "StepMetric"), key=lambda row: row["step"])[WARMUP - 1 :]
    since, until = steps[0]["timestamp"], steps[-1]["timestamp"]
    cards = [row for row in _rows(store, job_id, "GpuSample") if since <= row["timestamp"] <= until]
    store.close()
    busy = [row["utilization_percent"] for row in cards if row["utilization_percent"] is not None]
    idle = sum(percent <= IDLE_PERCENT for percent in busy) / len(busy) if busy else None
    parameters = job.spec.parameters
    wanted = {name: parameters[name] for name in ("workers", "packing", "batch_size", "context", "seed")}
    count = {"skipped": steps[0]["step"], "steps": steps[-1]["step"]}
    tokens = trainer.count_tokens(model, quick, {**wanted, **count})
    return Measured(
        run=job_id,
        parameters={name: parameters[name] for name in ("workers", "packing", "batch_size", "prepare")},
        outcome=str(job.outcome),
        health=json.loads(home.run("analyze", job_id, "--json"))["health"],
        steps=steps[-1]["step"],
        seconds=round(until - since, 1),
        tokens_per_second=round(tokens / (until - since), 1),
        tokens_per_step=round(tokens / (len(steps) - 1), 1),
        gpu_samples=len(busy),
        idle_share=None if idle is None else round(idle, 3),
        gpu_busy_mean=round(sum(busy) / len(busy) / 100, 3) if busy else None,
        idle_dollars_per_hour=None if idle is None else round(idle * price, 2),
        peak_gpu_gb=max((row["memory_used_gb"] for row in cards if row["memory_used_gb"]), default=None),
    )


def _rows(store: Store, job_id: str, table: str) -> list[dict[str, Any]]:
    found = store.series.read(job_id, table)
    return list(found[max(found)].rows()) if found else []


def _change_recipe(folder: Path, *, has_gpu: bool) -> None:
    """Copy the shipped recipe; the machine may have little disk and no network, and a trial needs no GPU."""
    copy = folder / "llm-lora"
    shutil.copytree(BUILTIN / "llm-lora", copy, ignore=shutil.ignore_patterns("__pycache__"))
    recipe = yaml.safe_load((copy / "recipe.yaml").read_text(encoding="utf-8"))
    recipe["needs"] = {"gpus": 1 if has_gpu else 0, "disk_gib": 1}
    del recipe["bootstrap"]
    if not has_gpu:
        recipe["health"]["argv"].remove("--cuda")
    (copy / "recipe.yaml").write_text(yaml.safe_dump(recipe, sort_keys=False), encoding="utf-8")


def _write_rows(slow: Path, quick: Path, size: Size) -> None:
    """Questions with answers, 300 tokens on average; every second row is a document that is too long to be used.

    `quick` gets the same with documents that are just too long: what is learned of it is the same, in the same order.
    """
    chance = random.Random(7)
    paragraphs = [" ".join(f"w{word}" for word in chance.choices(range(WORDS), k=500)) for _ in range(100)]
    lines: dict[Path, list[str]] = {slow: [], quick: []}
    for _ in range(size.rows):
        asked, answered = chance.randint(10, 100), min(900, 30 + int(chance.expovariate(1 / 220)))
        words = [f"w{word}" for word in chance.choices(range(WORDS), k=asked + answered)]
        row = {"prompt": " ".join(words[:asked]), "completion": " ".join(words[asked:])}
        document = chance.choices(paragraphs, k=size.document_words // 500)
        for folder, kept in ((slow, document), (quick, document[: 1 + CONTEXT // 500])):
            lines[folder] += [json.dumps(row), json.dumps({**row, "prompt": " ".join(kept)})]
    for folder, rows in lines.items():
        folder.mkdir()
        (folder / "rows.jsonl").write_text("\n".join(rows), encoding="utf-8")


def _print(measured: Measured) -> None:
    print(json.dumps(asdict(measured)), flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default="python3", help="the Python that trains")
    parser.add_argument("--site", type=Path, help="folder with packages that this Python lacks")
    parser.add_argument("--price", type=float, default=2.5, help="of the machine, in dollars per hour")
    parser.add_argument("--scratch", type=Path, help="where everything is made: some 2 GB")
    parser.add_argument("--keep", type=Path, help="folder that gets the home's database, with all that was recorded")
    parser.add_argument("--trial", action="store_true", help="a tiny model for a few steps, without a GPU")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
