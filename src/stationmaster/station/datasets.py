"""Datasets: checked, repaired and packed before money is spent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from stationmaster.datasets.report import DatasetProblem, DatasetReport
from stationmaster.datasets.rules import CaptionRule, DatasetKind, DatasetRules
from stationmaster.datasets.sources.reference import (
    BucketReference,
    DatasetReference,
    HubReference,
    UploadReference,
    parse_reference,
)
from stationmaster.datasets.tree import shown

__all__ = [
    "BucketReference",
    "CaptionRule",
    "DatasetKind",
    "DatasetProblem",
    "DatasetReference",
    "DatasetReport",
    "DatasetRules",
    "Datasets",
    "HubReference",
    "PackedDataset",
    "Progress",
    "SampleSet",
    "UploadReference",
    "parse_reference",
    "shown",
]

Progress = Callable[[int, int], None]
"""Called with the bytes done and the total."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedDataset:
    """A complete archive on disk. `sha256` and `size` are those of the archive file."""

    path: Path
    sha256: str
    size: int
    files: int
    fingerprint: str  # of the files' names and contents, independent of the packing
    manifest: Path  # a file beside it with every file's SHA-256


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSet:
    """A small set of captioned images to try a training with."""

    folder: Path
    trigger: str  # the word that its captions begin with


class Datasets(Protocol):
    """A dataset in a bucket or on the Hub is downloaded into the cache first, only as far as it changed.

    The download raises NotFound, DatasetInvalid, DiskFull, ConfigInvalid without a key, DeliveryRefused, DeliveryBusy.
    """

    def rules_of(self, recipe: str, *, trigger: str | None = None) -> DatasetRules:
        """What a recipe expects of its dataset. Raises NotFound, RecipeInvalid."""

    def check(
        self, source: DatasetReference, rules: DatasetRules, *, progress: Progress | None = None
    ) -> DatasetReport:
        """Check a dataset; the report lists every problem and its fix.

        Raises NotFound if there is none, DatasetInvalid for an archive that cannot be read, DiskFull.
        """

    def repair(
        self, source: DatasetReference, target: Path, rules: DatasetRules, *, progress: Progress | None = None
    ) -> DatasetReport:
        """Write a repaired copy to a new folder; the report is about the copy and lists the repairs. The dataset itself
        is not changed.

        Raises as `check` does, and UserError for a folder that exists or cannot be written.
        """

    def pack(
        self,
        source: DatasetReference,
        target: Path,
        *,
        zstd: bool = False,
        force: bool = False,
        progress: Progress | None = None,
        packing: Progress | None = None,
    ) -> PackedDataset:
        """Write a dataset as one tar file, and its manifest beside it; the same content gives the same bytes.
        `packing` is called while it is written, `progress` while the dataset is downloaded.

        If the target is a folder, the file is named after its hash. Raises as `check` does, and UserError if the file
        would overwrite something that is not an archive (unless `force`), or cannot be written.
        """

    def write_sample(self, folder: Path | None = None) -> SampleSet:
        """Draw the demo's images into a folder, by default one in the home; repeating it changes nothing."""
