"""Jobs and a recipe for crash tests: as small as they can be and still pass through everything."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stationmaster.datasets.archive_reader import open_dataset
from stationmaster.datasets.pack import pack_into
from stationmaster.model import DatasetRef, JobSpec, Quote
from stationmaster.money import ZERO, MicroDollars
from tests.support.jobs.recipe_texts import write_recipe
from tests.support.jobs.tiny_lora_runs import write_images

_RECIPE = """\
name: chaos
version: 1
title: Two steps
description: A check and a training, with one file that is sent along.
parameters:
  steps: {type: int, default: 4, min: 1, max: 100, help: How many.}
files: [train.py]
steps:
  - {name: check, argv: [python3, "{{ recipe.dir }}/train.py", --check], timeout: 1m}
  - name: train
    training: true
    argv: [python3, "{{ recipe.dir }}/train.py"]
    timeout: 1h
    expect: ["output/{{ job.name | filename }}.safetensors"]
outputs:
  - {pattern: output/*.safetensors, kind: checkpoint, step: '_(\\d+)\\.safetensors$'}
time: {seconds_per_step: 1.0, fixed: 1m}
"""


def write_chaos_recipe(registry: Path) -> None:
    """`chaos@1`, which a fake machine pretends to run."""
    file = write_recipe(registry, "chaos", _RECIPE)
    (file.parent / "train.py").write_text("print('never run')\n", encoding="utf-8")


def a_job(
    job_id: str,
    folder: Path,
    *,
    recipe: str,
    provider: str,
    parameters: Mapping[str, Any] | None = None,
    dataset: DatasetRef | None = None,
) -> JobSpec:
    """A job that may take an hour, with the smallest dataset there is unless another is given."""
    return JobSpec(
        id=job_id,
        name=job_id,
        recipe=recipe,
        provider=provider,
        dataset=dataset or a_tiny_dataset(folder),
        quote=Quote(
            hours_low=0.1,
            hours_expected=0.1,
            hours_high=0.1,
            price_per_hour=ZERO,
            cost_low=ZERO,
            cost_expected=ZERO,
            cost_high=ZERO,
        ),
        max_seconds=36_000.0,
        max_spend=MicroDollars(1_000_000_000),
        parameters=parameters or {},
    )


def a_picture_dataset(folder: Path) -> DatasetRef:
    """A few captioned images, packed."""
    folder.mkdir(parents=True, exist_ok=True)
    images = write_images(folder / "images", count=4)
    with open_dataset(images) as source:
        packed = pack_into(source, folder)
    return DatasetRef(source=str(images), archive=str(packed.path), sha256=packed.sha256, size=packed.size, images=4)


def a_tiny_dataset(folder: Path) -> DatasetRef:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        info = tarfile.TarInfo("a.txt")
        info.size = 5
        tar.addfile(info, io.BytesIO(b"hello"))
    data = buffer.getvalue()
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / "tiny.tar"
    archive.write_bytes(data)
    return DatasetRef(
        source=str(folder), archive=str(archive), sha256=hashlib.sha256(data).hexdigest(), size=len(data), images=1
    )
