"""Where recipes are stored and how their files are called."""

from __future__ import annotations

from pathlib import Path

BUILTIN = Path(__file__).parent / "builtin"
FILE_NAMES = ("recipe.yaml", "recipe.json", "tool.yaml", "tool.json")
