"""A new recipe to start from: a folder that already trains something small, with a comment at every choice."""

from __future__ import annotations

from pathlib import Path

from stationmaster.errors import UserError
from stationmaster.recipes.schema import RECIPE_NAME

_RECIPE = """\
# Check it with `stationmaster recipes lint FOLDER`; see what it runs with `stationmaster train … --dry-run`.
name: NAME
version: 1                      # once it has been used, change it under a new version
title: NAME
description: What it trains, with which trainer, for whom.
framework: auto                 # whose output it prints: ai-toolkit, kohya, hf-trainer, …
# log_patterns: [{pattern: 'tick (?P<step>[0-9]+) cost (?P<loss>[0-9.]+)'}]   # for output that is not recognised
# image: owner/trainer@sha256:… # container image to rent a machine with
# runtime: podman               # or docker: steps run in a container; without it, on the machine itself
# container: {image: owner/trainer@sha256:…, memory_gib: 24, mounts: [{source: /data/models, target: /models}]}

needs: {gpus: 0, vram_gib: 0, disk_gib: 5}      # cuda: 12.4, where the trainer needs it
# launcher: accelerate          # or torchrun: one process per GPU; put after the training step's Python
# hooks: hooks.py               # called locally when a job is submitted: derived parameters, further checks

parameters:                     # what a person may set: --steps 100, or -p steps=100
  steps: {type: int, default: 20, min: 1, max: 100000, lever: steps, help: How many steps to train.}
  learning_rate:
    type: float
    default: 1e-4
    min: 0
    max: 1
    lever: learning_rate        # what it is to the training, so that advice on a finished run can change it
    help: The step size of the optimizer.

dataset: {kind: images, min_images: 4, captions: optional}

files: [train.py]               # sent to the machine, into recipe.dir

configs:                        # filled in for each job, into config.dir
  - path: train.json
    format: json                # or yaml, toml
    data:
      name: "{{ job.name | filename }}"
      steps: "{{ parameters.steps }}"           # a single value keeps its type
      learning_rate: "{{ parameters.learning_rate }}"
      dataset: "{{ dataset.dir }}"
      output: "{{ output.dir }}"
      trigger: {when: job.trigger, value: "{{ job.trigger }}"}   # left out when there is none

# bootstrap:                    # installs the trainer; may run twice
#   - name: packages            # exact versions: what is published tomorrow must not run with your token
#     shell: python3 -c "import torch" || python3 -m pip install torch==2.8.0

health: {argv: [python3, --version], timeout: 1m}   # must exit with 0 before the steps begin; `every: 10m` repeats it
# gated: [{repository: owner/model, secret: HF_TOKEN}]   # access is checked before anything is rented

steps:                          # argv does not pass through a shell
  - name: train
    training: true
    argv: [python3, "{{ recipe.dir }}/train.py", "{{ config.dir }}/train.json"]
    # secrets: [HF_TOKEN]       # as an environment variable of this step alone
    timeout: 1d
    tries: 2
    expect: ["output/{{ job.name | filename }}.safetensors"]

outputs:                        # downloaded; the group in `step` is the training step
  - {pattern: output/*.safetensors, kind: checkpoint, step: '-(\\d+)\\.safetensors$'}

# samples: {pattern: output/samples/*.png, step: '-(\\d+)_\\d+\\.png$'}

stop: {signal: TERM, grace: 10s}
# stop: {save: {signal: USR1, proof: output/*.safetensors, timeout: 3m}}   # or touch: work/save-now

# cleanup:                      # before the machine is released, also after a failure
#   - {name: tidy, argv: [rm, -rf, "{{ work.dir }}/cache"], timeout: 1m}
# resume: {argv: ["--resume={{ resume.checkpoint }}"]}

time: {steps: parameters.steps, seconds_per_step: 0.05, fixed: 2s}
# memory: {base_gib: 8.5, per_item_gib: 1.2, measured_on: RTX 4090}   # of a GPU; batch: parameters.batch_size
"""

_TRAIN = """\
\"\"\"Stands in for a trainer: reads its config, prints its loss, leaves a model.\"\"\"

import json
import pathlib
import sys

config = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
output = pathlib.Path(config["output"])
output.mkdir(parents=True, exist_ok=True)
for step in range(1, config["steps"] + 1):
    print(f"step {step}/{config['steps']} loss: {1 / step:.4f}", flush=True)
header = b'{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
model = len(header).to_bytes(8, "little") + header + b"\\0"
(output / f"{config['name']}.safetensors").write_bytes(model)
"""


def write_skeleton(folder: Path) -> Path:
    """The recipe file of a new folder; raises UserError if it is there already or cannot be a recipe's name."""
    name = folder.absolute().name
    if not RECIPE_NAME.fullmatch(name):
        raise UserError(f"{name!r} cannot be a recipe name", hint="use lower-case letters, digits and dashes")
    try:
        folder.mkdir(parents=True)
        (folder / "train.py").write_text(_TRAIN, encoding="utf-8")
        file = folder / "recipe.yaml"
        file.write_text(_RECIPE.replace("NAME", name), encoding="utf-8")
    except FileExistsError:
        raise UserError(f"{folder} exists already", hint="give the path of a new folder") from None
    except OSError as problem:
        raise UserError(f"{folder} cannot be written: {problem.strerror}", hint="choose another place") from problem
    return file
