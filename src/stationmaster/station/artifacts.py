"""The files that were fetched from a job's machines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol


class Artifacts(Protocol):
    def pull(self, job_id: str, target: Path) -> Sequence[Path]:
        """Copy a job's fetched files to a folder and verify them; each file keeps the path that it had on the machine.

        Raises NotFound where nothing is at home yet, TransferFailed for a file that has changed, UserError
        for a folder that cannot be written to.
        """
