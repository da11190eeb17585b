"""Reads the files of a case as the analysis gets them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from stationmaster.analysis.configs.base import TrainerConfig
from stationmaster.analysis.configs.reading import read_config
from stationmaster.analysis.recorded_run import RecordedRun
from stationmaster.errors import UserError
from stationmaster.series.table import Table
from stationmaster.station.run_files.reading import read_run_file


def recorded_run(folder: Path, *, job: str) -> RecordedRun:
    """Return the run of a case's folder."""
    tables: dict[str, Table] = {}
    try:
        tables = dict(read_run_file(folder / "run.db", job=job).tables)
    except UserError:  # a file without rows of this job: there is only the log
        pass
    facts = tables.pop("RunInfo", None)
    rows = () if facts is None else zip(facts.values("key"), facts.values("value"), strict=True)
    info = {key: value for key, value in rows if value is not None}
    config = next(path for path in sorted(folder.iterdir()) if path.stem == "config")
    return RecordedRun(
        job_id=job,
        tables=tables,
        info=info,
        log=(folder / "log.txt").read_bytes().decode(errors="replace"),
        config=_read_config(config.read_text(encoding="utf-8"), config.name),
    )


@cache  # most cases share their config with others
def _read_config(text: str, name: str) -> TrainerConfig | None:
    return read_config(text, name=name)
