"""The files that were downloaded from a job's machines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol


class Artifacts(Protocol):
    def pull(self, job_id: str, target: Path) -> Sequence[Path]:
        """Copy a job's downloaded files to a folder and verify them; each file keeps its path on the machine.

        Raises NotFound if there are none yet, TransferFailed for a file that has changed, UserError for a folder that
        is not writable.
        """
