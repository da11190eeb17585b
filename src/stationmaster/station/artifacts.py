"""The files that were downloaded from a job's machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from stationmaster.station.stored_file import Progress, StoredFile

__all__ = ["IMAGE_SUFFIXES", "Artifact", "Artifacts", "Progress", "StoredFile", "Thumbnail"]

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".gif")


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file that a training wrote. `path` is that on the machine, relative to the job's folder there."""

    attempt: int
    path: str
    kind: str  # checkpoint, sample, log, metrics
    size: int
    step: int | None
    sha256: str | None
    verified: bool  # its hash was checked where it is stored now
    is_available: bool  # it can be downloaded from here
    loss: float | None = None  # of the training step at which it was made, if one was read there
    prompt_number: int | None = None  # of a sample, from 0: samples of one prompt have the same
    prompt: str | None = None  # that the trainer was given for it

    @property
    def is_image(self) -> bool:
        return PurePosixPath(self.path).suffix.lower() in IMAGE_SUFFIXES


@dataclass(frozen=True, slots=True, kw_only=True)
class Thumbnail:
    """A small picture of a picture. `version` changes with the picture and the size."""

    data: bytes
    media_type: str
    version: str


class Artifacts(Protocol):
    def listed(self, job_id: str) -> Sequence[Artifact]:
        """The files of a job that are for people, by attempt, step and path. Raises NotFound for an unknown job."""

    def file(self, job_id: str, path: str, *, attempt: int | None = None) -> StoredFile:
        """One of the job's files, by default that of the last attempt that has it.

        Raises NotFound for a file that the job does not have or that cannot be downloaded from here, and
        TransferFailed if it has changed since it was stored.
        """

    def thumbnail(self, job_id: str, path: str, *, attempt: int | None = None, width: int = 256) -> Thumbnail:
        """A picture of the job, scaled down to this width. Raises NotFound, and PictureInvalid for one that is broken
        or too large.
        """

    def pull(self, job_id: str, target: Path, *, progress: Progress | None = None) -> Sequence[Path]:
        """Copy a job's downloaded files to a folder and verify them; each file keeps its path on the machine.

        `progress` is called with the bytes of all files. Raises NotFound if there are none yet, TransferFailed for a
        file that has changed, UserError for a folder that is not writable.
        """
