"""The files of a job: what its training wrote, and its model in the catalogue."""

from __future__ import annotations

import dataclasses
from typing import Self

from pydantic import Field

from stationmaster.model import Checkpoint, Place, Registering, Registration, TrainedModel
from stationmaster.model.catalogue import BUCKET, HOME, HUB
from stationmaster.station.wire.document import Document, Instant


class CheckpointDocument(Document):
    """A file that the training wrote."""

    attempt: int
    """The attempt that wrote it."""
    path: str = Field(examples=["output/cats.safetensors"])
    """On the machine, relative to the job's folder."""
    kind: str = Field(examples=["checkpoint"])
    """`checkpoint`, `sample`, `log` or `metrics`."""
    size: int
    """Size in bytes."""
    step: int | None = None
    """The training step at which it was written."""
    sha256: str | None = None
    """Its SHA-256, once it is known."""
    location: str | None = None
    """Where its copy is: a path on the server, or an address."""
    verified_at: float | None = None
    """When the copy was verified, in seconds since 1970; null: it is only on the machine."""

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Self:
        return cls(**dataclasses.asdict(checkpoint))

    def value(self) -> Checkpoint:
        return Checkpoint(**dict(self))


class CatalogueDocument(Document):
    """A job's model in the catalogue."""

    slug: str
    """Its name in the catalogue."""
    places: tuple[str, ...]
    """Its locations."""
    registration: str = Field(examples=["NO"])
    """`NO`, `DUE`, `STARTED` or `DONE`."""
    note: str | None
    """On the registration."""
    file_name: str = ""
    """Name of the model file."""
    sha256: str = ""
    """SHA-256 of the model file."""
    size: int = 0
    """Size of the model file in bytes."""
    complete: bool = True
    """Whether the training ended by itself."""
    created_at: Instant = 0.0
    """When it was added to the catalogue."""

    @classmethod
    def of(cls, model: TrainedModel) -> Self:
        return cls(
            slug=model.slug,
            places=tuple(place.address for place in model.places),
            registration=model.registration.state,
            note=model.registration.note,
            file_name=model.file_name,
            sha256=model.sha256,
            size=model.size,
            complete=model.complete,
            created_at=model.created_at,
        )

    def value(self, job_id: str, *, name: str, recipe: str, owner: str | None) -> TrainedModel:
        return TrainedModel(
            slug=self.slug,
            job_id=job_id,
            name=name,
            recipe=recipe,
            file_name=self.file_name,
            sha256=self.sha256,
            size=self.size,
            complete=self.complete,
            created_at=self.created_at,
            owner=owner,
            places=tuple(Place(kind=_kind_of(address), address=address) for address in self.places),
            registration=Registration(state=Registering(self.registration), note=self.note),
        )


def _kind_of(address: str) -> str:
    return HUB if address.startswith("hf://") else BUCKET if address.startswith("s3://") else HOME
