"""Parses a dataset reference: a local folder or archive, an s3:// prefix, a dataset on the Hub, or an upload."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from stationmaster.errors import NotFound, UserError

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]")
_HUB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
_HUB = "hf://datasets/"
_HINT = "pass a folder, a .tar or .zip file, s3://BUCKET/PREFIX or hf://datasets/OWNER/NAME"
_S3 = "s3://"
_UPLOAD = "upload:"
_UPLOADED = re.compile(r"upload:(?P<id>[0-9a-f]{32})(?: \((?P<label>.*)\))?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketReference:
    """All objects below a prefix of a bucket, or one archive in it."""

    bucket: str
    key: str

    def __str__(self) -> str:
        return f"{_S3}{self.bucket}/{self.key}"

    @property
    def name(self) -> str:
        return PurePosixPath(self.key).name or self.bucket


@dataclass(frozen=True, slots=True, kw_only=True)
class HubReference:
    """A dataset repository on the Hub, at a branch, tag or commit."""

    repository: str
    revision: str | None = None

    def __str__(self) -> str:
        return f"{_HUB}{self.repository}" + (f"@{self.revision}" if self.revision else "")

    @property
    def name(self) -> str:
        return self.repository.rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadReference:
    """A dataset that was uploaded to the server. `label` is only for people: the name that it was uploaded under."""

    id: str
    label: str | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{_UPLOAD}{self.id}"

    @property
    def name(self) -> str:
        return self.label or f"upload-{self.id[:8]}"

    @property
    def described(self) -> str:
        """With its label, as a job's dataset is shown; `parse_reference` reads this too."""
        return str(self) if self.label is None else f"{self} ({self.label})"


RemoteReference = BucketReference | HubReference | UploadReference
DatasetReference = Path | RemoteReference


def parse_reference(text: str) -> DatasetReference:
    """Parse a dataset option. Raises UserError for an invalid address.

    >>> parse_reference("s3://pictures/cats/"), parse_reference("hf://datasets/anna/cats@main").revision
    (BucketReference(bucket='pictures', key='cats'), 'main')
    """
    if not text.strip():
        raise UserError("the dataset's path is empty", hint=_HINT)
    if text.startswith(_UPLOAD):
        return _upload_reference(text)
    if text.startswith(_S3):
        return _bucket_reference(text)
    if text.startswith("hf://"):
        return _hub_reference(text)
    if "://" in text:
        raise UserError(
            f"{text} is not a supported dataset address",
            hint=_HINT,
        )
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise NotFound(f"there is no home folder for {text}") from None


def _upload_reference(text: str) -> UploadReference:
    found = _UPLOADED.fullmatch(text)
    if found is None:
        raise UserError(
            f"{text} is not an uploaded dataset",
            hint="write upload:ID with the id that the upload's answer has; a folder of that name is ./upload:…",
        )
    return UploadReference(id=found["id"], label=found["label"])


def _bucket_reference(text: str) -> BucketReference:
    bucket, _, key = text.removeprefix(_S3).partition("/")
    if not _BUCKET.fullmatch(bucket):
        raise UserError(f"{text} has no valid bucket name", hint="write s3://BUCKET/PREFIX")
    return BucketReference(bucket=bucket, key=key.strip("/"))


def _hub_reference(text: str) -> HubReference:
    repository, _, revision = text.removeprefix(_HUB).partition("@")
    if not text.startswith(_HUB) or not _HUB_NAME.fullmatch(repository):
        raise UserError(f"{text} is not a dataset on the Hub", hint="write hf://datasets/OWNER/NAME or …/NAME@REVISION")
    if revision and not _REVISION.fullmatch(revision):
        raise UserError(f"{revision} is not a valid revision", hint="write a branch, a tag or a commit")
    return HubReference(repository=repository, revision=revision or None)
