"""Trained models, and where to get them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from stationmaster.model.open_enum import OpenEnum

HUB = "hub"
BUCKET = "bucket"
HOME = "home"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a model's weights are stored, verified there by size and SHA-256."""

    kind: str  # HUB, BUCKET or HOME
    address: str  # a path, hf://owner/name/file or s3://bucket/key
    link: str | None = None  # web page
    public: bool = False  # everyone may download it


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePicture:
    """A local sample picture of a model, and the prompt it was made from."""

    path: str
    text: str


class Registering(OpenEnum):
    """How far the registration of a model with the image service is."""

    NO = "NO"  # not requested, or not possible: see the note
    DUE = "DUE"  # to be requested, or requested again after a failure
    STARTED = "STARTED"  # the service is downloading it
    DONE = "DONE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    state: Registering = Registering.NO
    note: str | None = None
    due_at: float | None = None
    tries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedModel:
    """A model in the catalogue: what it is, what it was trained on, and where to get it."""

    slug: str
    job_id: str
    name: str
    recipe: str
    file_name: str
    sha256: str
    size: int
    complete: bool
    created_at: float
    family: str | None = None
    trigger: str | None = None
    base_model: str | None = None
    dataset_sha256: str | None = None
    owner: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)  # parameters, steps, losses, how long it took
    places: tuple[Place, ...] = ()
    previews: tuple[SamplePicture, ...] = ()
    registration: Registration = Registration()

    def place(self, kind: str) -> Place | None:
        return next((place for place in self.places if place.kind == kind), None)

    def at(self, *places: Place) -> TrainedModel:
        """The same model with these places; each replaces one of the same kind."""
        kept = [place for place in self.places if all(place.kind != other.kind for other in places)]
        return replace(self, places=(*kept, *places))
