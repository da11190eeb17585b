"""A folder that is put back as it was: a finished training costs seconds, a copy of its folder nearly nothing."""

from __future__ import annotations

import shutil
from pathlib import Path


class SavedFolder:
    """What lies in the folder now. It returns to the same place, because a store names its files by their paths."""

    def __init__(self, folder: Path, copy: Path) -> None:
        self.folder = folder
        self._copy = copy
        shutil.copytree(folder, copy, symlinks=True)

    def put_back(self) -> Path:
        """The folder, with nothing that was added, changed or removed since it was saved."""
        shutil.rmtree(self.folder)
        shutil.copytree(self._copy, self.folder, symlinks=True)
        return self.folder
