"""Reports of checked datasets, and what a recipe expects of its dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field

from stationmaster.datasets.report import DatasetProblem, DatasetReport, Severity
from stationmaster.datasets.rules import CaptionRule, DatasetKind, DatasetRules, RowFormat
from stationmaster.datasets.sources.reference import RemoteReference, parse_reference
from stationmaster.datasets.tree import shown
from stationmaster.errors import UserError
from stationmaster.station.datasets import PackedDataset
from stationmaster.station.wire.document import Document, RequestDocument


class DatasetProblemDocument(Document):
    """One finding of a check."""

    severity: Severity
    """`error`: it prevents the training."""
    code: str = Field(examples=["image_too_small"])
    """Stable, unlike the message."""
    path: str = Field(examples=["cats/01.png"])
    """Relative to the dataset; empty for the dataset as a whole."""
    message: str
    """What is wrong."""
    fix: str
    """What to do about it."""

    @classmethod
    def of(cls, problem: DatasetProblem) -> Self:
        return cls(
            severity=problem.severity,
            code=problem.code,
            path=shown(problem.path),
            message=problem.message,
            fix=problem.fix,
        )

    def value(self) -> DatasetProblem:
        return DatasetProblem(
            severity=self.severity, code=self.code, path=self.path, message=self.message, fix=self.fix
        )


class DatasetReportDocument(Document):
    """A checked dataset, with everything that is wrong with it."""

    trainable: bool
    """Whether there are no errors."""
    files: int
    """How many files it has."""
    bytes: int
    """Size of all files together."""
    images: int
    """How many images it has."""
    captions: int
    """How many images have a caption."""
    rows: int
    """Lines of a text dataset."""
    errors: int
    """How many problems prevent the training."""
    warnings: int
    """How many other problems there are."""
    problems: tuple[DatasetProblemDocument, ...]
    """Errors first, then warnings, each by path."""
    repairs: tuple[str, ...] = ()
    """What was changed in a repaired copy."""

    @classmethod
    def of(cls, report: DatasetReport) -> Self:
        return cls(
            trainable=report.is_trainable,
            files=report.files,
            bytes=report.bytes,
            images=report.images,
            captions=report.captions,
            rows=report.rows,
            errors=len(report.errors),
            warnings=len(report.warnings),
            problems=tuple(DatasetProblemDocument.of(problem) for problem in report.problems),
            repairs=report.repairs,
        )

    def value(self) -> DatasetReport:
        return DatasetReport(
            problems=tuple(problem.value() for problem in self.problems),
            files=self.files,
            bytes=self.bytes,
            images=self.images,
            captions=self.captions,
            rows=self.rows,
            repairs=self.repairs,
        )


class PackedDatasetDocument(Document):
    """A packed dataset on this computer."""

    path: str
    """The archive that was written."""
    sha256: str
    """SHA-256 of the archive."""
    size: int
    """Size of the archive in bytes."""
    files: int
    """How many files are in it."""
    fingerprint: str
    """Hash of the dataset's files and their names; the same files have the same one."""
    manifest: str
    """The file that lists its files with their hashes."""

    @classmethod
    def of(cls, packed: PackedDataset) -> Self:
        return cls(
            path=shown(str(packed.path)),
            sha256=packed.sha256,
            size=packed.size,
            files=packed.files,
            fingerprint=packed.fingerprint,
            manifest=shown(str(packed.manifest)),
        )


class DatasetRulesDocument(Document):
    """What a dataset is checked against."""

    kind: DatasetKind
    min_images: int
    recommended_images: int | None
    captions: CaptionRule
    max_caption_characters: int
    trigger: str | None
    min_side: int
    recommended_side: int | None
    max_aspect: float
    control_folder: str | None
    subfolders: bool
    text_format: RowFormat | None
    min_rows: int
    max_row_characters: int
    max_pixels: int
    max_image_bytes: int

    @classmethod
    def of(cls, rules: DatasetRules) -> Self:
        return cls(**{name: getattr(rules, name) for name in cls.model_fields})

    def value(self) -> DatasetRules:
        return DatasetRules(**self.model_dump())


class AskedRules(RequestDocument):
    """What to check a dataset against; a recipe's rules go before the others."""

    recipe: str | None = Field(default=None, max_length=200, examples=["tiny-lora@1"])
    """Check against the rules of this recipe, as `name@version`."""
    trigger: str | None = Field(default=None, max_length=200, examples=["ohwx"])
    """The word that captions should contain."""


class AskedCheck(RequestDocument):
    """A dataset for the server to check."""

    dataset: str = Field(min_length=1, max_length=1000, examples=["hf://datasets/anna/cats"])
    """`s3://BUCKET/PREFIX`, `hf://datasets/OWNER/NAME` or `upload:ID`."""
    kind: DatasetKind = DatasetKind.IMAGES
    min_images: int = Field(default=10, ge=1, le=2**31)
    recommended_images: int | None = Field(default=None, ge=1, le=2**31)
    captions: CaptionRule = CaptionRule.OPTIONAL
    max_caption_characters: int = Field(default=1500, ge=1, le=2**31)
    trigger: str | None = Field(default=None, max_length=200)
    min_side: int = Field(default=256, ge=1, le=2**31)
    recommended_side: int | None = Field(default=None, ge=1, le=2**31)
    max_aspect: float = Field(default=3.0, ge=1.0, le=1e6)
    control_folder: str | None = Field(default=None, max_length=200)
    subfolders: bool = True
    text_format: RowFormat | None = None
    min_rows: int = Field(default=10, ge=1, le=2**31)
    max_row_characters: int = Field(default=100_000, ge=1, le=2**31)
    max_pixels: int = Field(default=64_000_000, ge=1, le=2**31)
    max_image_bytes: int = Field(default=256_000_000, ge=1, le=2**31)

    @classmethod
    def of(cls, dataset: str, rules: DatasetRules) -> Self:
        return cls(dataset=dataset, **DatasetRulesDocument.of(rules).model_dump())

    def source(self) -> RemoteReference:
        """Raises UserError for a path: files of the server are not for those who use it from elsewhere."""
        source = parse_reference(self.dataset)
        if isinstance(source, Path):
            raise UserError(
                "a dataset on the server's own disk cannot be checked from here", hint="upload it: POST /api/datasets"
            )
        return source

    def rules(self) -> DatasetRules:
        return DatasetRules(**self.model_dump(exclude={"dataset"}))
