"""A training for rented machines in crash tests: no package needed, quick, and honest about when it ran where."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from pathlib import Path

from stationmaster.model import DatasetRef, JobSpec, Quote
from stationmaster.money import MicroDollars
from tests.support.jobs.recipe_texts import write_recipe

_RECIPE = """\
name: storm
version: 1
title: A training in a storm
description: Writes a checkpoint now and then, and notes in a file of the tests where and when it ran. SIGUSR1 ends it.
framework: plain
runtime: host
needs: {gpus: 0, vram_gib: 0, disk_gib: 0.1}
parameters:
  steps: {type: int, default: 20, min: 1, max: 100000, help: How many.}
  pace: {type: float, default: 0.1, min: 0, max: 10, help: Seconds per step.}
  journal: {type: str, default: "", max_length: 500, help: Where it notes that it runs.}
  wait_for: {type: str, default: "", max_length: 500, help: A file without which it does not end.}
files: [train.py]
steps:
  - name: train
    training: true
    argv:
      - python3
      - -S
      - "{{ recipe.dir }}/train.py"
      - "{{ output.dir }}/{{ job.name | filename }}"
      - "{{ parameters.steps }}"
      - "{{ parameters.pace }}"
      - "{{ parameters.journal }}"
      - "{{ job.id }}"
      - "{{ parameters.wait_for }}"
    timeout: 1h
    expect: ["output/{{ job.name | filename }}.safetensors"]
outputs:
  - {pattern: output/*.safetensors, kind: checkpoint, step: '_(\\d+)\\.safetensors$'}
time: {seconds_per_step: 0.1, fixed: 1s}
"""

_TRAINER = """\
import json, os, signal, struct, sys, time

is_enough = []
signal.signal(signal.SIGUSR1, lambda *_: is_enough.append(True))
target, steps, pace, journal, job = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4], sys.argv[5]
wait_for = sys.argv[6]
machine = os.environ.get("STATIONMASTER_JOB_ROOT", "")


def save(path):
    header = json.dumps({"weights": {"dtype": "F32", "shape": [256], "data_offsets": [0, 1024]}}).encode()
    with open(path + ".part", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + os.urandom(1024))
    os.replace(path + ".part", path)


def note():
    if journal:
        line = json.dumps({"job": job, "machine": machine, "at": time.monotonic()}) + "\\n"
        with open(journal, "a") as file:
            file.write(line)


os.makedirs(os.path.dirname(target), exist_ok=True)
for step in range(1, steps + 1):
    if is_enough:
        break
    note()
    time.sleep(pace)
    print("step %d/%d loss=%.4f" % (step, steps, 1.0 / step), flush=True)
    if step % 5 == 0:
        save("%s_%06d.safetensors" % (target, step))
        while os.path.exists(journal + ".hold"):
            time.sleep(0.05)
save(target + ".safetensors")
while wait_for and not os.path.exists(wait_for):
    time.sleep(0.05)
"""


def write_storm_recipe(registry: Path) -> None:
    file = write_recipe(registry, "storm", _RECIPE)
    (file.parent / "train.py").write_text(_TRAINER, encoding="utf-8")


def storm_job(
    job_id: str,
    dataset: DatasetRef,
    *,
    journal: Path,
    steps: int = 20,
    pace: float = 0.1,
    max_seconds: float = 600.0,
    wait_for: Path | None = None,
) -> JobSpec:
    """A job with a real quote, so that credit and limits count for it; with its model saved it waits for a file."""
    dollar = MicroDollars(1_000_000)
    return JobSpec(
        id=job_id,
        name=job_id,
        recipe="storm@1",
        provider="simulator",
        dataset=dataset,
        quote=Quote(
            hours_low=0.01,
            hours_expected=0.01,
            hours_high=0.02,
            price_per_hour=MicroDollars(2 * dollar),
            cost_low=MicroDollars(dollar // 100),
            cost_expected=MicroDollars(dollar // 50),
            cost_high=MicroDollars(dollar // 10),
        ),
        max_seconds=max_seconds,
        max_spend=MicroDollars(10 * dollar),
        parameters={"steps": steps, "pace": pace, "journal": str(journal), "wait_for": str(wait_for or "")},
    )


def check_nobody_trained_twice(journal: Path) -> None:
    """No job was trained on two machines at the same moment."""
    spans: dict[str, dict[str, tuple[float, float]]] = defaultdict(dict)
    for line in journal.read_text().splitlines() if journal.exists() else ():
        noted = json.loads(line)
        first, _ = spans[noted["job"]].get(noted["machine"], (noted["at"], 0.0))
        spans[noted["job"]][noted["machine"]] = (first, noted["at"])
    for job, machines in spans.items():
        in_order = sorted(machines.values())
        overlaps = [(one, two) for one, two in itertools.pairwise(in_order) if two[0] < one[1]]
        assert not overlaps, f"{job} was trained on two machines at once: {machines}"
