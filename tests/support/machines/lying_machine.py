"""The liar takes trackside's place on a machine whose disk the tests can reach, as the machine's owner could."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tests.support.programs import ROOT
from tests.support.waiting import until

_LIAR = ROOT / "tests" / "fixtures" / "liar" / "trackside_liar.py"
_TRACKSIDE = "trackside.pyz"

Lies = dict[str, dict[str, Any]]


def corrupt(disk: Path, lies: Lies) -> Path:
    """The job's folder on the disk; its trackside gives false answers from now on."""
    honest = until(lambda: next(iter(disk.rglob(_TRACKSIDE)), None), "trackside on the machine")
    folder = honest.parent
    shutil.copy(honest, folder / "honest.pyz")
    tell(folder, lies)
    shutil.copy(_LIAR, folder / "liar.new")
    (folder / "liar.new").replace(honest)
    return folder


def tell(folder: Path, lies: Lies) -> None:
    """Change the false answers from now on."""
    (folder / "lies.new").write_text(json.dumps(lies))
    (folder / "lies.new").replace(folder / "lies.json")
