"""ARCHITECTURE.md is short, and everything that it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.programs import ROOT

PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
SOURCE = ROOT / "src"
PATHS = sorted(set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:/|\.py))`", PAGE)))


def section(title: str) -> str:
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def places(path: str) -> tuple[Path, ...]:
    """Where a path of the page may be: most are below the package, those inside `control/` may leave that out."""
    return (SOURCE / "stationmaster" / path, SOURCE / "stationmaster" / "control" / path, SOURCE / path, ROOT / path)


def test_the_page_stays_short() -> None:
    assert len(PAGE.splitlines()) < 120


@pytest.mark.parametrize("path", PATHS)
def test_a_path_that_the_page_names_exists(path: str) -> None:
    assert any(place.exists() for place in places(path)), f"ARCHITECTURE.md names {path}"


def test_the_life_of_a_job_names_the_handler_of_every_state() -> None:
    life = section("The life of one job")
    handlers = sorted((SOURCE / "stationmaster" / "control" / "states").rglob("*.py"))
    named = [
        handler.relative_to(SOURCE / "stationmaster").as_posix()
        for handler in handlers
        if handler.name == "handler.py" or (handler.parent.name == "states" and handler.name != "__init__.py")
    ]
    assert len(named) == 8
    assert [path for path in named if f"`{path}`" not in life] == []


def parts_of(folder: Path) -> list[str]:
    """Modules and packages; a folder that an earlier version left behind, with compiled files only, is neither."""
    packages = [f"{path.parent.name}/" for path in folder.glob("*/__init__.py")]
    modules = [path.name for path in folder.glob("*.py") if not path.name.startswith("_")]
    return sorted([*packages, *modules])


@pytest.mark.parametrize("folder", ["stationmaster", "stationmaster/control"])
def test_every_part_is_named(folder: str) -> None:
    named = section("The parts")
    assert [part for part in parts_of(SOURCE / folder) if f"`{part}`" not in named] == []
