"""Runs that are cut off: their latest checkpoints are at home by then, and other machines go on from them."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from stationmaster.model import Checkpoint, Outcome, Reason, State
from stationmaster.station.local.station import LocalStation
from tests.support.chaos.specs import a_tiny_dataset
from tests.support.chaos.storm_recipe import storm_job
from tests.support.chaos.storm_station import Hold, StormForge, StormStation
from tests.support.jobs.recipe_texts import write_recipe
from tests.support.jobs.submitting import retry

STEPS = 50
KILLED_AFTER, OUTBID_AFTER = 35, 45
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


def held_after():
    try:
        with open(journal + ".hold") as file:
            return int(file.read())
    except FileNotFoundError:
        return None


os.makedirs(os.path.dirname(target), exist_ok=True)
for step in range(1, steps + 1):
    with open(journal, "a") as file:
        where = {"machine": os.environ["STATIONMASTER_JOB_ROOT"], "pid": os.getpid()}
        file.write(json.dumps({"job": job, "at": time.monotonic(), **where}) + "\\n")
    time.sleep(pace)
    while held_after() == seen:
        time.sleep(0.05)
    seen += 1
    print("step %d/%d loss=%.4f" % (step, steps, 1.0 / step), flush=True)
    if step % 5 == 0:
        save("%s_%06d.safetensors" % (target, step))
save(target + ".safetensors")
"""


def hold_after(station: StormStation, step: int | None) -> None:
    """No training goes past this step: however slow this computer is, there is time to cut it off."""
    file = station.journal.with_name(f"{station.journal.name}.hold")
    if step is None:
        file.unlink()
        return
    fresh = file.with_suffix(".new")
    fresh.write_text(str(step))
    fresh.replace(file)


def until_at_home(station: StormStation, job_id: str, step: int) -> None:
    """The checkpoint of this step is at home, whole."""

    def found() -> Checkpoint | None:
        known = station.store.checkpoints.of_job(job_id)
        return next((one for one in known if one.verified_at and one.location and one.step == step), None)

    checkpoint = station.until(found, f"the checkpoint of step {step} at home")
    content = Path(str(checkpoint.location)).read_bytes()
    assert hashlib.sha256(content).hexdigest() == checkpoint.sha256
    assert steps_seen(content) == step


def steps_seen(content: bytes) -> int:
    return int.from_bytes(content[-8:], "little")


def noted(station: StormStation, job_id: str) -> list[dict[str, Any]]:
    lines = map(json.loads, station.journal.read_text().splitlines())
    return [line for line in lines if line["job"] == job_id]


def until_ended(station: StormStation, job_id: str) -> None:
    station.until(lambda: station.job(job_id).state is State.ENDED, f"the end of {job_id}")


def test_a_killed_run_is_retried_from_its_checkpoint_and_an_outbid_one_goes_on_by_itself_each_on_another_machine(
    tmp_path: Path, url: str, forge: StormForge, hold: Hold
) -> None:
    bids = {"STATIONMASTER_VASTAI__INTERRUPTIBLE": "true", "STATIONMASTER_ARTIFACTS__EVERY": "0.3"}
    station = hold(StormStation(tmp_path / "home", url, forge, **bids))
    write_recipe(station.home / "recipes", "counting", RECIPE).with_name("train.py").write_text(TRAINER)
    kill_at_seventy_percent(station, tmp_path)
    outbid_at_ninety_percent(station)
    until_ended(station, "job-2")
    station.check()
    ended = station.job("job-2")
    assert (ended.outcome, ended.attempt) == (Outcome.COMPLETED, 2), ended.explanation
    assert (ended.progress.step, ended.progress.total_steps) == (STEPS, STEPS)
    assert steps_seen(Path(ended.model.address or "").read_bytes()) == STEPS
    events = station.store.events.of_job("job-2")
    assert [event.payload["step"] for event in events if event.kind == "resumed"] == [OUTBID_AFTER]
    assert [event.payload["reason"] for event in events if event.kind == "attempt_failed"] == [Reason.OUTBID]
    trained = noted(station, "job-2")
    assert len(trained) == STEPS - KILLED_AFTER + 1, "only what was missing is trained, and the step that was cut off"
    machines = {line["machine"] for line in trained}
    assert len(machines) == 2
    assert machines.isdisjoint(line["machine"] for line in noted(station, "job-1"))


def kill_at_seventy_percent(station: StormStation, folder: Path) -> None:
    """The training dies, and its job ends; a retry is submitted."""
    hold_after(station, KILLED_AFTER)
    spec = storm_job("job-1", a_tiny_dataset(folder / "dataset"), journal=station.journal, steps=STEPS, pace=0.05)
    own = {name: value for name, value in spec.parameters.items() if name != "wait_for"}  # all that this recipe has
    station.submit(replace(spec, recipe="counting@1", parameters=own))
    station.start("worker")
    until_at_home(station, "job-1", KILLED_AFTER)
    os.kill(noted(station, "job-1")[-1]["pid"], signal.SIGKILL)
    until_ended(station, "job-1")
    killed = station.job("job-1")
    assert (killed.outcome, killed.reason) == (Outcome.FAILED, Reason.STEP_FAILED)
    with closing(LocalStation(station.settings, station.environ)) as local:
        retried = retry(local, "job-1", resume=True, new_id="job-2").job
    assert (retried.spec.retry_of, retried.spec.resume_step) == ("job-1", KILLED_AFTER)


def outbid_at_ninety_percent(station: StormStation) -> None:
    """Its machine is taken for good, and the next attempt has begun."""
    hold_after(station, OUTBID_AFTER)
    station.start("worker")
    until_at_home(station, "job-2", OUTBID_AFTER)
    (taken,) = station.alive()
    station.customer.arm("outbid", instance_id=taken["id"], seconds=3600.0)
    station.until(lambda: station.job("job-2").attempt == 2, "a further attempt")
    left = next(machine for machine in station.truth() if machine["id"] == taken["id"])
    assert left["intended_status"] == "stopped", "a queued start may bill at any time"
    hold_after(station, None)
