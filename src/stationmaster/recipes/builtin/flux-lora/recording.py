"""Steps and events of the training, recorded by trackside where it runs beside it; else nothing is recorded."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from job_database import JOB_ID


class Recording:
    """Looks into ai-toolkit's databases for what is to be recorded. Nothing of it disturbs the training."""

    def __init__(self, trainer: int, database: Path, losses: Path, *, config: Path, python: str) -> None:
        self._watch: Any = None
        if not os.environ.get("TRACKSIDE_DATABASE"):  # trackside sets it where it is to record
            return
        try:
            from trackside.integrations.ai_toolkit import record

            self._watch = record(database, losses, pid=trainer, config=config, job_id=JOB_ID, python=python)
        except Exception as problem:  # noqa: BLE001 (it is not there, or cannot write)
            self._stop(problem)

    def look(self, *, is_last: bool = False) -> None:
        if self._watch is None:
            return
        try:
            self._watch.look(time.time(), is_last=is_last)
            if is_last:
                self._watch.close()
        except Exception as problem:  # noqa: BLE001 (it will not work the next time either)
            self._stop(problem)

    def _stop(self, problem: Exception) -> None:
        self._watch = None
        with suppress(OSError):  # as where the disk is full
            print(f"[stationmaster] nothing more is recorded: {type(problem).__name__} {problem}", flush=True)
