"""Datasets as a user may use them: those that they uploaded."""

from __future__ import annotations

from pathlib import Path

from stationmaster.errors import Forbidden
from stationmaster.model import Caller, Right
from stationmaster.station.datasets import (
    DatasetReference,
    DatasetReport,
    DatasetRules,
    Datasets,
    PackedDataset,
    Progress,
    SampleSet,
)
from stationmaster.station.owned.dataset_uploads import OwnedDatasetUploads
from stationmaster.station.owned.rights import require


class OwnedDatasets:
    def __init__(self, caller: Caller, datasets: Datasets, uploads: OwnedDatasetUploads) -> None:
        self._caller = caller
        self._all = datasets
        self._uploads = uploads

    def rules_of(self, recipe: str, *, trigger: str | None = None) -> DatasetRules:
        return self._all.rules_of(recipe, trigger=trigger)

    def check(
        self, source: DatasetReference, rules: DatasetRules, *, progress: Progress | None = None
    ) -> DatasetReport:
        require(self._caller, Right.TRAIN)
        self._uploads.require_own_source(source)
        return self._all.check(source, rules, progress=progress)

    def repair(
        self, source: DatasetReference, target: Path, rules: DatasetRules, *, progress: Progress | None = None
    ) -> DatasetReport:
        raise _refused()

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
        raise _refused()

    def write_sample(self, folder: Path | None = None) -> SampleSet:
        raise _refused()


def _refused() -> Forbidden:
    return Forbidden("only administrators may write files on the server")
