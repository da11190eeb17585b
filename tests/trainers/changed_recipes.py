"""Shipped recipes as they are, but for what a computer without a GPU cannot do: each change is named by its test."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from stationmaster.documents import read_document
from stationmaster.recipes.places import BUILTIN


def changed_recipe(name: str, folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """A copy of the shipped recipe `name` below `folder`, after `change` was made to what its file says."""
    copy = folder / name
    shutil.copytree(BUILTIN / name, copy, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    file = copy / "recipe.yaml"
    said = read_document(file.read_text(encoding="utf-8"), is_json=False).data
    change(said)
    lender = str(said.get("files_of", "")).partition("@")[0]
    if lender and not (folder / lender).exists():
        shutil.copytree(BUILTIN / lender, folder / lender, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    file.write_text(yaml.safe_dump(said, sort_keys=False, allow_unicode=True, width=1_000), encoding="utf-8")
    return copy
