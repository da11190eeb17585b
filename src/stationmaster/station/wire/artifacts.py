"""Files that trainings wrote."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from stationmaster.station.artifacts import Artifact
from stationmaster.station.wire.document import Document, Number


class ArtifactDocument(Document):
    """A file that a training wrote."""

    attempt: int
    """The attempt that wrote it."""
    path: str = Field(examples=["output/cats_000000500.safetensors"])
    """On the machine, relative to the job's folder."""
    kind: str = Field(examples=["checkpoint"])
    """`checkpoint`, `sample`, `log` or `metrics`."""
    size: int
    """In bytes."""
    step: int | None = None
    """The training step at which it was written."""
    sha256: str | None = None
    """Its SHA-256, once it is known."""
    verified: bool
    """Whether its hash was checked where it is stored now."""
    is_available: bool
    """Whether it can be downloaded from this server."""
    is_image: bool
    """Whether it has a thumbnail."""
    loss: Number | None = None
    """Of the training step at which it was made, if one was read there."""
    prompt_number: int | None = None
    """Of a sample, from 0: samples of one prompt have the same number."""
    prompt: str | None = None
    """What a sample was made from; null where the trainer was given no prompt."""

    @classmethod
    def of(cls, artifact: Artifact) -> Self:
        return cls(
            attempt=artifact.attempt,
            path=artifact.path,
            kind=artifact.kind,
            size=artifact.size,
            step=artifact.step,
            sha256=artifact.sha256,
            verified=artifact.verified,
            is_available=artifact.is_available,
            is_image=artifact.is_image,
            loss=artifact.loss,
            prompt_number=artifact.prompt_number,
            prompt=artifact.prompt,
        )

    def value(self) -> Artifact:
        return Artifact(
            attempt=self.attempt,
            path=self.path,
            kind=self.kind,
            size=self.size,
            step=self.step,
            sha256=self.sha256,
            verified=self.verified,
            is_available=self.is_available,
            loss=self.loss,
            prompt_number=self.prompt_number,
            prompt=self.prompt,
        )
