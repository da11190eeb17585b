"""Jobs for benchmarks: a dataset of one small file, the recipe of the demo, the fake provider."""

from __future__ import annotations

import hashlib
import io
import tarfile
from functools import cache
from pathlib import Path

from stationmaster.model import DatasetRef, JobSpec, Quote
from stationmaster.money import MicroDollars
from stationmaster.recipes.parameters import ParameterValue, resolve
from stationmaster.recipes.registry import find

RECIPE = "tiny-lora@1"
_RATE = MicroDollars(360_000)  # what the fake provider asks for
_QUOTE = Quote(
    hours_low=1.0,
    hours_expected=1.0,
    hours_high=1.0,
    price_per_hour=_RATE,
    cost_low=_RATE,
    cost_expected=_RATE,
    cost_high=_RATE,
)


def job_spec(number: int, dataset: DatasetRef, *, steps: int) -> JobSpec:
    return JobSpec(
        id=f"job-{number}",
        name=f"job-{number}",
        recipe=RECIPE,
        provider="fake",
        dataset=dataset,
        quote=_QUOTE,
        max_seconds=30 * 86_400.0,
        max_spend=MicroDollars(10_000_000_000),
        parameters=_parameters(steps),
    )


@cache
def _parameters(steps: int) -> dict[str, ParameterValue]:
    return resolve(find(RECIPE).recipe, {"steps": steps})


def small_dataset(folder: Path) -> DatasetRef:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        info = tarfile.TarInfo("a.txt")
        info.size = 5
        tar.addfile(info, io.BytesIO(b"hello"))
    archive = folder / "dataset.tar"
    archive.write_bytes(buffer.getvalue())
    sha256 = hashlib.sha256(buffer.getvalue()).hexdigest()
    return DatasetRef(source=str(folder), archive=str(archive), sha256=sha256, size=archive.stat().st_size, images=1)
