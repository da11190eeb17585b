"""Trained models in the catalogue."""

from __future__ import annotations

import math
from typing import Any, Self

from pydantic import Field

from stationmaster.errors import UserError
from stationmaster.model import Place, Registering, Registration, SamplePicture, TrainedModel
from stationmaster.station.models import ModelCursor
from stationmaster.station.wire.document import Document, Instant
from stationmaster.station.wire.plain import plain, unplain


class PlaceDocument(Document):
    """Where a model's weights are stored, verified there."""

    kind: str = Field(examples=["home"])
    """`home`: on the server; `bucket`; `hub`."""
    address: str = Field(examples=["hf://me/cats-0a1b2c/cats.safetensors"])
    """A path on the server, or an `hf://` or `s3://` address."""
    link: str | None = None
    """Its web page."""
    public: bool = False
    """Whether everyone may download it."""

    @classmethod
    def of(cls, place: Place) -> Self:
        return cls(kind=place.kind, address=place.address, link=place.link, public=place.public)

    def value(self) -> Place:
        return Place(kind=self.kind, address=self.address, link=self.link, public=self.public)


class PreviewDocument(Document):
    """A sample picture of a model."""

    path: str
    """On the server; `GET /api/jobs/{job}/artifacts` lists the same pictures for download."""
    text: str
    """The prompt that it was made from."""

    @classmethod
    def of(cls, preview: SamplePicture) -> Self:
        return cls(path=preview.path, text=preview.text)

    def value(self) -> SamplePicture:
        return SamplePicture(path=self.path, text=self.text)


class RegistrationDocument(Document):
    """How far the registration with the image service is."""

    state: str = Field(examples=["NO"])
    """`NO`, `DUE`, `STARTED` or `DONE`."""
    note: str | None = None
    """Its id there, or why it failed."""
    due_at: Instant | None = None
    """When it is tried next."""
    tries: int = 0
    """How often it was tried."""

    @classmethod
    def of(cls, registration: Registration) -> Self:
        return cls(
            state=registration.state.value,
            note=registration.note,
            due_at=registration.due_at,
            tries=registration.tries,
        )

    def value(self) -> Registration:
        return Registration(state=Registering(self.state), note=self.note, due_at=self.due_at, tries=self.tries)


class ModelDocument(Document):
    """A trained model: what it is, what it was trained on, and where it is."""

    slug: str = Field(examples=["cats-0a1b2c"])
    """Its name in the catalogue; unique."""
    job_id: str
    """The job that trained it."""
    name: str
    """Name of the job."""
    recipe: str = Field(examples=["flux-lora@1"])
    """The recipe, as `name@version`."""
    file_name: str = Field(examples=["cats.safetensors"])
    """Name of the model file."""
    sha256: str
    """SHA-256 of the model file."""
    size: int
    """In bytes."""
    complete: bool
    """Whether all steps were trained."""
    created_at: Instant
    """When it was added to the catalogue."""
    family: str | None = None
    """What it is a model for, such as `flux`."""
    trigger: str | None = None
    """The word that calls what it learned."""
    base_model: str | None = None
    """The model that it was trained on."""
    dataset_sha256: str | None = None
    """SHA-256 of the packed dataset."""
    owner: str | None = None
    """The user whose job trained it; null: the single user of the settings."""
    details: dict[str, Any] = Field(default_factory=dict)
    """Parameters, steps, losses and how long it took."""
    places: tuple[PlaceDocument, ...] = ()
    """Where it is."""
    previews: tuple[PreviewDocument, ...] = ()
    """Pictures that it made."""
    registration: RegistrationDocument
    """Whether it is registered with ComfyDeploy."""

    @classmethod
    def of(cls, model: TrainedModel) -> Self:
        return cls(
            slug=model.slug,
            job_id=model.job_id,
            name=model.name,
            recipe=model.recipe,
            file_name=model.file_name,
            sha256=model.sha256,
            size=model.size,
            complete=model.complete,
            created_at=model.created_at,
            family=model.family,
            trigger=model.trigger,
            base_model=model.base_model,
            dataset_sha256=model.dataset_sha256,
            owner=model.owner,
            details=plain(model.details),
            places=tuple(PlaceDocument.of(place) for place in model.places),
            previews=tuple(PreviewDocument.of(preview) for preview in model.previews),
            registration=RegistrationDocument.of(model.registration),
        )

    def value(self) -> TrainedModel:
        return TrainedModel(
            slug=self.slug,
            job_id=self.job_id,
            name=self.name,
            recipe=self.recipe,
            file_name=self.file_name,
            sha256=self.sha256,
            size=self.size,
            complete=self.complete,
            created_at=self.created_at,
            family=self.family,
            trigger=self.trigger,
            base_model=self.base_model,
            dataset_sha256=self.dataset_sha256,
            owner=self.owner,
            details=unplain(self.details),
            places=tuple(place.value() for place in self.places),
            previews=tuple(preview.value() for preview in self.previews),
            registration=self.registration.value(),
        )


def cursor_of(model: TrainedModel) -> str:
    """The `next` of a page that ends with this model."""
    return cursor_text(model.created_at, model.slug)


def cursor_text(created_at: float, slug: str) -> str:
    return f"{created_at!r}~{slug}"


def parse_cursor(text: str) -> ModelCursor:
    """Raises UserError for what `cursor_of` did not make."""
    at, separator, slug = text.partition("~")
    try:
        seconds = float(at)
    except ValueError:
        seconds = math.nan
    if not (separator and math.isfinite(seconds) and slug.isprintable()):
        raise UserError("after is not the end of a page", hint="pass `next` of the page before as it is")
    return seconds, slug
