"""Datasets on this computer, or downloaded into its cache."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from stationmaster.datasets import pack, repair, validate
from stationmaster.datasets.archive_writer import Compression
from stationmaster.datasets.report import DatasetReport
from stationmaster.datasets.rules import DatasetRules, rules_of
from stationmaster.datasets.sample_set import TRIGGER, write_sample_set
from stationmaster.datasets.sources.reference import DatasetReference
from stationmaster.recipes.parameter_levers import trained_resolution
from stationmaster.recipes.registry import find
from stationmaster.station.datasets import PackedDataset, Progress, SampleSet
from stationmaster.station.local.dataset_sources import open_source
from stationmaster.station.local.file_errors import user_errors_of_files
from stationmaster.station.local.installation import Installation


class LocalDatasets:
    def __init__(self, installation: Installation) -> None:
        self._settings = installation.settings

    def rules_of(self, recipe: str, *, trigger: str | None = None) -> DatasetRules:
        found = find(recipe, folders=self._settings.recipes).recipe
        return rules_of(found.dataset, trigger=trigger, resolution=trained_resolution(found, {}))

    def check(
        self, source: DatasetReference, rules: DatasetRules, *, progress: Progress | None = None
    ) -> DatasetReport:
        with open_source(source, self._settings, progress=progress) as folder:
            return validate.check(folder, rules)

    def repair(
        self, source: DatasetReference, target: Path, rules: DatasetRules, *, progress: Progress | None = None
    ) -> DatasetReport:
        elsewhere = user_errors_of_files("write the repaired copy to another folder")
        with elsewhere, open_source(source, self._settings, progress=progress) as folder:
            return repair.fix(folder, target, rules)

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
        opened = open_source(source, self._settings, progress=progress)
        return pack_source(opened, target, zstd=zstd, force=force, packing=packing)

    def write_sample(self, folder: Path | None = None) -> SampleSet:
        place = self._settings.home / "demo" / "images" if folder is None else folder
        with user_errors_of_files("choose a folder that you can write to"):
            write_sample_set(place)
        return SampleSet(folder=place, trigger=TRIGGER)


def pack_source(
    source: AbstractContextManager[Path],
    target: Path,
    *,
    zstd: bool = False,
    force: bool = False,
    packing: Progress | None = None,
) -> PackedDataset:
    """Pack the folder that `source` opens. Raises as `Datasets.pack` does."""
    pack.require_replaceable(target, force=force)
    compression = Compression.ZSTD if zstd else Compression.NONE
    write = pack.pack_into if target.is_dir() else pack.pack
    with source as folder:
        packed = write(folder, target, compression=compression, progress=packing)
    return PackedDataset(
        path=packed.path,
        sha256=packed.sha256,
        size=packed.size,
        files=packed.files,
        fingerprint=packed.fingerprint,
        manifest=pack.write_manifest(packed),
    )
