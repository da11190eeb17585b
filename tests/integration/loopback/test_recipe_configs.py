"""A recipe's config files reach the machine before its steps, with every value as it was given."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from stationmaster.model import Outcome, State
from tests.support.jobs.local_world import LocalWorld, write_pictures
from tests.support.jobs.submitting import submit

RECIPE = """\
name: configured
version: 1
title: Reads its config
description: Writes what its config says into the header of its model.
needs: {gpus: 0, disk_gib: 1}
parameters:
  steps: {type: int, default: 3, help: How many.}
  note: {type: str, default: "", help: Any text.}
dataset: {min_images: 1}
files: [train.py]
configs:
  - path: run.json
    format: json
    data: {steps: "{{ parameters.steps }}", note: "{{ parameters.note }}", name: "{{ job.name }}"}
bootstrap:
  - {name: prepare, shell: "printf %s {{ parameters.note }} > {{ work.dir }}/note"}
health: {argv: [test, -f, "{{ work.dir }}/note"]}
steps:
  - name: train
    training: true
    argv: [python3, "{{ recipe.dir }}/train.py", "{{ config.dir }}/run.json", "{{ output.dir }}"]
    expect: [output/model.safetensors]
outputs: [{pattern: output/*.safetensors, kind: checkpoint}]
time: {seconds_per_step: 0.01}
"""
TRAIN = """\
import json, pathlib, sys
config = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
config["prepared"] = pathlib.Path("note").read_text(encoding="utf-8")
header = json.dumps({"__metadata__": {"seen": json.dumps(config)},
                     "w": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}).encode()
output = pathlib.Path(sys.argv[2])
output.mkdir(parents=True, exist_ok=True)
(output / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\\0")
"""
NOTE = "'; touch broken #\"\n$(touch broken) ${HOME} é🚂 ../{{ 7 * 7 }}"


def test_a_config_and_a_script_carry_a_person_s_text_unchanged_to_the_machine(tmp_path: Path) -> None:
    folder = tmp_path / "recipes" / "configured"
    folder.mkdir(parents=True)
    (folder / "recipe.yaml").write_text(RECIPE, encoding="utf-8")
    (folder / "train.py").write_text(TRAIN, encoding="utf-8")
    pictures = write_pictures(tmp_path / "pictures")
    with LocalWorld(tmp_path, STATIONMASTER_RECIPES=str(tmp_path / "recipes")) as world:
        request = replace(
            world.request(pictures, name="cats; $(id)"), recipe="configured@1", parameters={"note": NOTE, "steps": 2}
        )
        job_id = submit(world.station, request).job.id
        world.work_until(lambda: world.station.jobs.view(job_id).job.state is State.ENDED, what="the job has ended")
        view = world.station.jobs.view(job_id)
        assert view.job.outcome is Outcome.COMPLETED, view.job.explanation
        home = tmp_path / "home" / "jobs" / job_id
        content = (home / "model.safetensors").resolve().read_bytes()
        assert json.loads((home / "sent" / "config" / "run.json").read_text(encoding="utf-8"))["note"] == NOTE
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    assert json.loads(header["__metadata__"]["seen"]) == {
        "steps": 2,
        "note": NOTE,
        "name": "cats; $(id)",
        "prepared": NOTE,
    }
    assert not list(tmp_path.rglob("broken"))
