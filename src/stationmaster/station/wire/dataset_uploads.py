"""Uploads of datasets."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from stationmaster.station.dataset_uploads import NewUpload, Upload, UploadedFile, UploadedPicture
from stationmaster.station.wire.datasets import DatasetProblemDocument
from stationmaster.station.wire.document import Document, Instant, RequestDocument

_ID = "5f1c9d02b7e84a36a1c4d8f7e0b3926d"


class StartUpload(RequestDocument):
    """What is about to be uploaded."""

    name: str = Field(min_length=1, max_length=120, examples=["cats"])
    """A job that trains on it has this name by default."""
    recipe: str | None = Field(default=None, max_length=200, examples=["tiny-lora@1"])
    """Each file is checked against the rules of this recipe while it arrives."""
    trigger: str | None = Field(default=None, max_length=200, examples=["ohwx"])
    """The word that captions should contain."""
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$", examples=[None])
    """If one archive is uploaded: its SHA-256. An upload of yours with the same content is answered again."""
    size: int | None = Field(default=None, ge=1, le=2**50, examples=[None])
    """If one archive is uploaded: its size in bytes."""

    def value(self, owner: str) -> NewUpload:
        return NewUpload(
            owner=owner, name=self.name, recipe=self.recipe, trigger=self.trigger, sha256=self.sha256, size=self.size
        )


class UploadDocument(Document):
    """An uploaded dataset."""

    id: str = Field(examples=[_ID])
    """Id of the upload."""
    reference: str = Field(examples=[f"upload:{_ID}"])
    """The `dataset` of a request to train on it."""
    owner: str = Field(examples=["anna"])
    """The user who uploads."""
    name: str = Field(examples=["cats"])
    """Name of the dataset."""
    created_at: Instant
    """When it was started."""
    expires_at: Instant
    """It is removed then, unless it is used before."""
    files: int
    """The files that were uploaded so far."""
    bytes: int
    """How many have arrived."""
    complete: bool
    """Whether it has files, and all that were begun have arrived."""
    recipe: str | None = Field(default=None, examples=["tiny-lora@1"])
    """Whose rules it is checked against, as named when the upload began."""
    trigger: str | None = Field(default=None, examples=["ohwx"])
    """The word that captions should contain."""

    @classmethod
    def of(cls, upload: Upload) -> Self:
        return cls(
            id=upload.id,
            reference=str(upload.reference),
            owner=upload.owner,
            name=upload.name,
            created_at=upload.created_at,
            expires_at=upload.expires_at,
            files=upload.files,
            bytes=upload.bytes,
            complete=upload.is_complete,
            recipe=upload.recipe,
            trigger=upload.trigger,
        )

    def value(self) -> Upload:
        return Upload(
            id=self.id,
            owner=self.owner,
            name=self.name,
            created_at=self.created_at,
            expires_at=self.expires_at,
            files=self.files,
            bytes=self.bytes,
            is_complete=self.complete,
            recipe=self.recipe,
            trigger=self.trigger,
        )


class UploadedFileDocument(Document):
    """One file of an upload."""

    path: str = Field(examples=["cats/01.png"])
    """Path in the dataset."""
    received: int
    """How many bytes have arrived; the next piece begins here."""
    size: int
    """Size in bytes."""
    complete: bool
    """Whether all of it has arrived."""
    problems: tuple[DatasetProblemDocument, ...] = ()
    """What is wrong with the file; only in the answer to its last piece."""

    @classmethod
    def of(cls, file: UploadedFile) -> Self:
        return cls(
            path=file.path,
            received=file.received,
            size=file.size,
            complete=file.is_complete,
            problems=tuple(DatasetProblemDocument.of(problem) for problem in file.problems),
        )

    def value(self) -> UploadedFile:
        return UploadedFile(
            path=self.path,
            received=self.received,
            size=self.size,
            is_complete=self.complete,
            problems=tuple(problem.value() for problem in self.problems),
        )


class UploadedPictureDocument(Document):
    """A picture of an upload, with the caption beside it."""

    path: str = Field(examples=["cats/01.png"])
    """Path in the dataset."""
    size: int
    """In bytes."""
    caption: str | None = Field(examples=["a photo of ohwx on a sofa"])
    """Null if there is none, or it is no text."""

    @classmethod
    def of(cls, picture: UploadedPicture) -> Self:
        return cls(path=picture.path, size=picture.size, caption=picture.caption)

    def value(self) -> UploadedPicture:
        return UploadedPicture(path=self.path, size=self.size, caption=self.caption)
