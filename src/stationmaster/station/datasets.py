"""Datasets: judged, repaired and packed before money is spent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from stationmaster.datasets.report import DatasetProblem, DatasetReport
from stationmaster.datasets.rules import CaptionRule, DatasetKind, DatasetRules
from stationmaster.datasets.sources.reference import BucketReference, DatasetReference, HubReference, parse_reference
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
    "parse_reference",
    "shown",
]

Progress = Callable[[int, int], None]
"""Called with the bytes done and the total."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedDataset:
    """An archive that is whole and on the disk. `sha256` and `size` are the archive file's own."""

    path: Path
    sha256: str
    size: int
    files: int
    fingerprint: str  # of the files' names and contents, however they are packed
    manifest: Path  # a file beside it with every file's SHA-256


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSet:
    """A small set of captioned images to try a training with."""

    folder: Path
    trigger: str  # the word that its captions begin with


class Datasets(Protocol):
    """A dataset that lies elsewhere, in a bucket or on the Hub, is fetched into the cache first; only what changed is.

    That raises NotFound, DatasetInvalid, DiskFull, ConfigInvalid without a key, DeliveryRefused, DeliveryBusy.
    """

    def rules_of(self, recipe: str, *, trigger: str | None = None) -> DatasetRules:
        """What a recipe expects of its dataset. Raises NotFound, RecipeInvalid."""

    def check(
        self, source: DatasetReference, rules: DatasetRules, *, progress: Progress | None = None
    ) -> DatasetReport:
        """Everything that is wrong with a dataset, and how to put it right.

        Raises NotFound where there is none, DatasetInvalid for an archive that cannot be read, DiskFull.
        """

    def repair(
        self, source: DatasetReference, target: Path, rules: DatasetRules, *, progress: Progress | None = None
    ) -> DatasetReport:
        """Write a repaired copy to a new folder; the report is on the copy, and says what was done. The dataset itself
        stays as it is.

        Raises as `check` does, and UserError for a folder that is there already or cannot be written to.
        """

    def pack(
        self,
        source: DatasetReference,
        target: Path,
        *,
        zstd: bool = False,
        force: bool = False,
        progress: Progress | None = None,
    ) -> PackedDataset:
        """Write a dataset as one tar file, and its manifest beside it; the same content gives the same bytes.

        A folder as target names the file by its hash. Raises as `check` does, and UserError where the file would take
        the place of something that is no archive (unless `force`d), or cannot be written.
        """

    def write_sample(self, folder: Path | None = None) -> SampleSet:
        """Paint the demo's images into a folder, by default one at home; repeating it changes nothing."""
