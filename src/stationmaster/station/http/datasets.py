"""Datasets: those of this computer are checked and packed here, by the rules of the server's recipes."""

from __future__ import annotations

from pathlib import Path

from stationmaster.datasets import repair, validate
from stationmaster.datasets.archive_reader import open_dataset
from stationmaster.datasets.sample_set import TRIGGER, write_sample_set
from stationmaster.errors import UserError
from stationmaster.station.datasets import (
    DatasetReference,
    DatasetReport,
    DatasetRules,
    PackedDataset,
    Progress,
    SampleSet,
)
from stationmaster.station.http.connection import Connection
from stationmaster.station.local.datasets import pack_source
from stationmaster.station.local.file_errors import user_errors_of_files
from stationmaster.station.wire.datasets import AskedCheck, DatasetReportDocument, DatasetRulesDocument


class HttpDatasets:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def rules_of(self, recipe: str, *, trigger: str | None = None) -> DatasetRules:
        path = "/api/datasets/rules"
        return self._connection.get(path, DatasetRulesDocument, recipe=recipe, trigger=trigger).value()

    def check(
        self, source: DatasetReference, rules: DatasetRules, *, progress: Progress | None = None
    ) -> DatasetReport:
        if isinstance(source, Path):
            with open_dataset(source) as folder:
                return validate.check(folder, rules)
        body = AskedCheck.of(str(source), rules)
        return self._connection.post("/api/datasets/check", DatasetReportDocument, body, patient=True).value()

    def repair(
        self, source: DatasetReference, target: Path, rules: DatasetRules, *, progress: Progress | None = None
    ) -> DatasetReport:
        with user_errors_of_files("write the repaired copy to another folder"), open_dataset(_here(source)) as folder:
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
        return pack_source(open_dataset(_here(source)), target, zstd=zstd, force=force, packing=packing)

    def write_sample(self, folder: Path | None = None) -> SampleSet:
        if folder is None:
            raise UserError("the folder of the demo's images is on the server", hint="name a folder of this computer")
        with user_errors_of_files("choose a folder that you can write to"):
            write_sample_set(folder)
        return SampleSet(folder=folder, trigger=TRIGGER)


def _here(source: DatasetReference) -> Path:
    if isinstance(source, Path):
        return source
    raise UserError(
        f"{source} is not on this computer: with --server only folders and archives here can be repaired or packed",
        hint="run this command on the server itself",
    )
