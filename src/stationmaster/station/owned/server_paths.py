"""Paths of the server's computer, which only administrators see: others see the name of the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from stationmaster.model import Job, RentedMachine
from stationmaster.station.jobs import JobView


def shown_path(place: str) -> str:
    """
    >>> shown_path("/srv/home/jobs/x/cats.safetensors"), shown_path("s3://models/cats.safetensors")
    ('cats.safetensors', 's3://models/cats.safetensors')
    """
    return PurePosixPath(place).name if place.startswith("/") else place


def without_paths(value: Any) -> Any:
    """The same for all texts in a JSON value, such as the payload of an event."""
    if isinstance(value, str):
        return shown_path(value)
    if isinstance(value, Mapping):
        return {name: without_paths(each) for name, each in value.items()}
    return [without_paths(each) for each in value] if isinstance(value, list | tuple) else value


def job_without_paths(job: Job) -> Job:
    spec, model = job.spec, job.model
    return replace(
        job,
        spec=replace(
            spec,
            dataset=replace(spec.dataset, source=shown_path(spec.dataset.source), archive=""),
            resume_from=_shown(spec.resume_from),
            resume_state=_shown(spec.resume_state),
        ),
        model=replace(model, address=_shown(model.address)),
        machine=RentedMachine(gpus=job.machine.gpus, transfer=job.machine.transfer),
    )


def view_without_paths(view: JobView) -> JobView:
    trained = view.trained
    if trained is not None:
        places = tuple(replace(place, address=shown_path(place.address)) for place in trained.places)
        previews = tuple(replace(preview, path=shown_path(preview.path)) for preview in trained.previews)
        trained = replace(trained, places=places, previews=previews)
    return replace(
        view,
        job=job_without_paths(view.job),
        checkpoints=tuple(replace(one, location=_shown(one.location)) for one in view.checkpoints),
        access=None,
        trained=trained,
    )


def _shown(place: str | None) -> str | None:
    return None if place is None else shown_path(place)
