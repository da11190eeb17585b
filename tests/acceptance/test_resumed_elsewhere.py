"""A run that is cut off at 60 %: its latest checkpoint is at home by then, and another machine goes on from it."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stationmaster.model import Checkpoint, Outcome, Reason, State
from stationmaster.simulator.harness import simulator_thread
from stationmaster.station.local.station import LocalStation
from tests.support.chaos.specs import a_tiny_dataset
from tests.support.chaos.storm_recipe import storm_job
from tests.support.chaos.storm_station import Hold, StormForge, StormStation, holding
from tests.support.jobs.recipe_texts import write_recipe
from tests.support.jobs.submitting import retry
from tests.support.vast.simulated_vast import quick_settings

STEPS = 50
PATIENCE_SECONDS = 150.0
RECIPE = """\
name: counting
version: 1
title: A training that forgets its count
description: Goes on from a checkpoint's weights, and counts its steps and numbers its files from 0.
framework: plain
needs: {gpus: 0, vram_gib: 0, disk_gib: 0.1}
parameters:
  steps: {type: int, default: 50, help: How many.}
  pace: {type: float, default: 0.1, help: Seconds per step.}
  journal: {type: str, default: "", max_length: 500, help: Where it notes that it runs.}
files: [train.py]
steps:
  - name: train
    training: true
    argv:
      - python3
      - -S
      - "{{ recipe.dir }}/train.py"
      - "{{ output.dir }}/{{ job.name | filename }}"
      - "{{ parameters.steps - resume.step }}"
      - "{{ parameters.pace }}"
      - "{{ parameters.journal }}"
      - "{{ job.id }}"
    timeout: 1h
    expect: ["output/{{ job.name | filename }}.safetensors"]
outputs: [{pattern: output/*.safetensors, kind: checkpoint, step: '_(\\d+)\\.safetensors$'}]
resume:
  argv: ["{{ resume.checkpoint }}"]
  counts_from_zero: true
time: {seconds_per_step: 0.1, fixed: 1s}
"""
#: The weights are the steps that they have seen, so that what was trained on can be read from them.
TRAINER = """\
import json, os, struct, sys, time

target, steps, pace, journal, job = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4], sys.argv[5]
seen = 0
if len(sys.argv) > 6:
    with open(sys.argv[6], "rb") as file:
        seen = struct.unpack("<Q", file.read()[-8:])[0]


def save(path):
    header = json.dumps({"weights": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]}}).encode()
    with open(path + ".part", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + struct.pack("<Q", seen))
    os.replace(path + ".part", path)


os.makedirs(os.path.dirname(target), exist_ok=True)
for step in range(1, steps + 1):
    with open(journal, "a") as file:
        where = {"machine": os.environ["STATIONMASTER_JOB_ROOT"], "pid": os.getpid()}
        file.write(json.dumps({"job": job, "at": time.monotonic(), **where}) + "\\n")
    time.sleep(pace)
    while seen == 35 and os.path.exists(journal + ".hold"):
        time.sleep(0.02)
    seen += 1
    print("step %d/%d loss=%.4f" % (step, steps, 1.0 / step), flush=True)
    if step % 5 == 0:
        save("%s_%06d.safetensors" % (target, step))
save(target + ".safetensors")
"""


@pytest.fixture(scope="module")
def forge() -> Iterator[StormForge]:
    with StormForge() as forge:
        yield forge


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with simulator_thread(quick_settings(tmp_path_factory.mktemp("resumed") / "simulator")) as url:
        yield url


@pytest.fixture
def hold() -> Iterator[Hold]:
    with holding() as hold:
        yield hold


@pytest.fixture
def station(tmp_path: Path, url: str, forge: StormForge, hold: Hold) -> StormStation:
    bids = {"STATIONMASTER_VASTAI__INTERRUPTIBLE": "true", "STATIONMASTER_ARTIFACTS__EVERY": "0.3"}
    made = hold(StormStation(tmp_path / "home", url, forge, **bids))
    file = write_recipe(made.home / "recipes", "counting", RECIPE)
    (file.parent / "train.py").write_text(TRAINER, encoding="utf-8")
    hold_file(made).touch()
    return made


def hold_file(station: StormStation) -> Path:
    """While it is there no training goes past 70 %: however slow this computer is, there is time to cut it off."""
    return station.journal.with_name(f"{station.journal.name}.hold")


def run_to_sixty_percent(station: StormStation, folder: Path) -> Checkpoint:
    """A job that has come so far; the checkpoint of it that is at home, whole."""
    spec = storm_job("job-1", a_tiny_dataset(folder / "dataset"), journal=station.journal, steps=STEPS)
    station.submit(replace(spec, recipe="counting@1"))
    station.start("worker")
    far = 0.6 * STEPS
    station.until(lambda: (station.job("job-1").progress.step or 0) >= far, "60 %", seconds=PATIENCE_SECONDS)
    station.until(lambda: any(_step(one) >= far for one in at_home(station, "job-1")), "its checkpoint at home")
    latest = max(at_home(station, "job-1"), key=_step)
    content = Path(str(latest.location)).read_bytes()
    assert hashlib.sha256(content).hexdigest() == latest.sha256
    assert steps_seen(content) == latest.step
    return latest


def at_home(station: StormStation, job_id: str) -> list[Checkpoint]:
    found = station.store.checkpoints.of_job(job_id)
    return [one for one in found if one.verified_at and one.location and one.step is not None]


def _step(one: Checkpoint) -> int:
    return one.step or 0


def steps_seen(content: bytes) -> int:
    return int.from_bytes(content[-8:], "little")


def noted(station: StormStation, job_id: str) -> list[dict[str, Any]]:
    lines = map(json.loads, station.journal.read_text().splitlines())
    return [line for line in lines if line["job"] == job_id]


def until_ended(station: StormStation, job_id: str) -> None:
    station.until(lambda: station.job(job_id).state is State.ENDED, f"the end of {job_id}", seconds=PATIENCE_SECONDS)


def test_a_killed_run_is_retried_from_its_checkpoint_on_another_machine(station: StormStation, tmp_path: Path) -> None:
    run_to_sixty_percent(station, tmp_path)
    os.kill(noted(station, "job-1")[-1]["pid"], signal.SIGKILL)
    hold_file(station).unlink()
    until_ended(station, "job-1")
    killed = station.job("job-1")
    assert (killed.outcome, killed.reason) == (Outcome.FAILED, Reason.STEP_FAILED)

    local = LocalStation(station.settings, station.environ)
    retried = retry(local, "job-1", resume=True, new_id="job-2").job
    local.close()
    from_step = retried.spec.resume_step or 0
    assert from_step >= 0.6 * STEPS, "the latest checkpoint is the one to go on from"
    station.start("worker")
    until_ended(station, "job-2")
    station.check()
    ended = station.job("job-2")
    assert (ended.outcome, ended.spec.retry_of) == (Outcome.COMPLETED, "job-1"), ended.explanation
    assert (ended.progress.step, ended.progress.total_steps) == (STEPS, STEPS)
    assert len(noted(station, "job-2")) == STEPS - from_step, "only what was missing is trained"
    assert steps_seen(Path(ended.model.address or "").read_bytes()) == STEPS
    assert {line["machine"] for line in noted(station, "job-1")}.isdisjoint(
        line["machine"] for line in noted(station, "job-2")
    )


def test_an_outbid_run_goes_on_by_itself_from_its_checkpoint_on_another_machine(
    station: StormStation, tmp_path: Path
) -> None:
    latest = run_to_sixty_percent(station, tmp_path)
    (taken,) = station.alive()
    station.customer.arm("outbid", instance_id=taken["id"], seconds=3600.0)
    station.until(lambda: station.job("job-1").attempt == 2, "a further attempt", seconds=PATIENCE_SECONDS)
    hold_file(station).unlink()
    until_ended(station, "job-1")
    station.check()
    ended = station.job("job-1")
    assert (ended.outcome, ended.attempt) == (Outcome.COMPLETED, 2), ended.explanation
    (resumed,) = [event for event in station.store.events.of_job("job-1") if event.kind == "resumed"]
    assert resumed.payload["step"] >= _step(latest)
    assert (ended.progress.step, ended.progress.total_steps) == (STEPS, STEPS)
    assert steps_seen(Path(ended.model.address or "").read_bytes()) == STEPS
    assert len({line["machine"] for line in noted(station, "job-1")}) == 2
