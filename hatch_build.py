"""Builds the page while a wheel is built."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PageHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or os.environ.get("STATIONMASTER_WITHOUT_PAGE"):
            return
        if subprocess.run([sys.executable, Path(self.root) / "web/build.py"]).returncode != 0:
            raise RuntimeError("the page could not be built; see above")
