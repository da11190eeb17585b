"""Every example in a docstring is run: what is wrong there misleads whoever reads the code."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import stationmaster
import trackside

SOURCES = [Path(str(package.__file__)).parent for package in (stationmaster, trackside)]
MODULES = sorted(
    ".".join(path.relative_to(folder.parent).with_suffix("").parts)
    for folder in SOURCES
    for path in folder.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8") and "builtin" not in path.parts
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_the_code_are_true(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name))
    assert (results.failed, results.attempted > 0) == (0, True)
