"""What a trainer reads beside a checkpoint goes with it: to another machine, and to a job that takes up an old one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from stationmaster.model import Desired, Outcome
from stationmaster.providers.loopback import LoopbackProvider
from stationmaster.station.proposals import TrainRequest
from tests.support.jobs.local_world import LocalWorld, write_pictures
from tests.support.jobs.recipe_texts import write_recipe
from tests.support.jobs.submitting import retry, submit

RECIPE = """\
name: stateful
version: 1
title: A training with a state
description: Writes a state beside each checkpoint, as an optimizer has one, and reads both when it goes on.
framework: plain
needs: {gpus: 0, vram_gib: 0, disk_gib: 0.1}
parameters:
  steps: {type: int, default: 40, help: How many.}
files: [train.py]
steps:
  - name: train
    training: true
    argv: [python3, -S, "{{ recipe.dir }}/train.py", "{{ output.dir }}", "{{ parameters.steps }}"]
    timeout: 1h
    expect: [output/model.safetensors]
outputs: [{pattern: output/*.safetensors, kind: checkpoint, step: '_(\\d+)\\.safetensors$'}]
stop: {signal: TERM, grace: 20s}
resume:
  argv: ["{{ resume.checkpoint }}", "{{ resume.state }}"]
  state: output/optimizer.pt
time: {seconds_per_step: 0.1, fixed: 1s}
"""
#: The state says of which step it is; going on with one of another step ends the training.
TRAINER = """\
import os, signal, struct, sys, time

output, steps = sys.argv[1], int(sys.argv[2])
ended = []
signal.signal(signal.SIGTERM, lambda *_: ended.append(1))
step = 0
if len(sys.argv) > 3:
    with open(sys.argv[3], "rb") as file:
        step = struct.unpack("<Q", file.read()[-8:])[0]
    with open(sys.argv[4], "rb") as file:
        of = int(file.read())
    print("state of step %d, checkpoint of step %d" % (of, step), flush=True)
    if of != step:
        sys.exit(3)


def write(name, content):
    with open(os.path.join(output, name + ".new"), "wb") as file:
        file.write(content)
    os.replace(os.path.join(output, name + ".new"), os.path.join(output, name))


def save(name):
    header = b'{"w":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}}'
    write(name + ".safetensors", struct.pack("<Q", len(header)) + header + struct.pack("<Q", step))
    write("optimizer.pt", b"%d" % step)


while step < steps and not ended:
    step += 1
    print("step %d/%d loss: 0.5" % (step, steps), flush=True)
    if step % 60 == 0:
        save("model_%d" % step)
    time.sleep(0.1)
save("model_%d" % step if ended else "model")
sys.exit(143 if ended else 0)
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[LocalWorld]:
    write_recipe(tmp_path / "recipes", "stateful", RECIPE).with_name("train.py").write_text(TRAINER, encoding="utf-8")
    recipes = str(tmp_path / "recipes")
    with LocalWorld(tmp_path, STATIONMASTER_RECIPES=recipes, STATIONMASTER_ARTIFACTS__EVERY="0.2") as opened:
        yield opened


def begin(world: LocalWorld, tmp_path: Path, *, steps: int) -> None:
    dataset = write_pictures(tmp_path / "pictures", count=10)
    submit(world.station, TrainRequest(recipe="stateful@1", dataset=dataset, id="old", parameters={"steps": steps}))


def log_of(world: LocalWorld, job_id: str) -> str:
    return b"".join(chunk.data for _, chunk in world.station.logs.of_job(job_id)).decode()


def state_at_home(world: LocalWorld) -> int | None:
    found = world.station.jobs.view("old").checkpoints
    return next((one.step for one in found if one.kind == "state" and one.verified_at), None)


def test_another_machine_goes_on_with_the_state_of_the_very_checkpoint(world: LocalWorld, tmp_path: Path) -> None:
    begin(world, tmp_path, steps=150)
    world.work_until(lambda: state_at_home(world) is not None, what="a checkpoint and its state at home")
    (rental,) = world.station.jobs.view("old").rentals
    asyncio.run(LoopbackProvider(world.settings.home / "machines", environment={}).destroy(rental.provider_id or ""))
    world.work_until_ended("old")
    job = world.station.jobs.view("old").job
    assert (job.outcome, job.attempt) == (Outcome.COMPLETED, 2)
    (resumed,) = [event for event in world.station.events.of_job("old") if event.kind == "resumed"]
    step = resumed.payload["step"]
    assert f"state of step {step}, checkpoint of step {step}" in log_of(world, "old")


def test_a_job_that_takes_up_a_stopped_one_has_its_state_too_and_people_do_not(
    world: LocalWorld, tmp_path: Path
) -> None:
    begin(world, tmp_path, steps=10_000)
    world.work_until(lambda: (world.station.jobs.find("old").progress.step or 0) > 5, what="some steps")
    world.station.jobs.desire("old", Desired.STOP)
    world.work_until_ended("old")
    stopped_at = state_at_home(world)
    assert stopped_at is not None
    names = {path.name for path in world.station.artifacts.pull("old", tmp_path / "pulled")}
    assert "optimizer.pt" not in names
    assert any(name.startswith("model_") for name in names)

    accepted = retry(world.station, "old", resume=True, new_id="new")
    assert accepted.job.spec.resume_step == stopped_at
    world.work_until(lambda: "step " + str(stopped_at + 1) in log_of(world, "new"), what="the steps that follow")
    assert f"state of step {stopped_at}, checkpoint of step {stopped_at}" in log_of(world, "new")
    world.station.jobs.desire("new", Desired.CANCEL)
    world.work_until_ended("new")


def test_a_finished_training_leaves_its_state_behind(world: LocalWorld, tmp_path: Path) -> None:
    begin(world, tmp_path, steps=5)
    world.work_until_ended("old")
    assert world.station.jobs.view("old").job.outcome is Outcome.COMPLETED
    assert state_at_home(world) is None
    assert not list((world.settings.home / "jobs" / "old").rglob("optimizer.pt"))
