"""The package runs on old Pythons and brings nothing along."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import trackside

PACKAGE = Path(trackside.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
FRAMEWORKS = {"accelerate", "keras", "transformers"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_file_has_the_grammar_of_python_3_8(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=(3, 8))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_file_imports_only_the_standard_library_and_trackside(path: Path) -> None:
    # The integration of a framework imports the framework that it is named after.
    framework = {path.stem} if path.parent.name == "integrations" and path.stem in FRAMEWORKS else set()
    assert _imported(path) <= {*sys.stdlib_module_names, "trackside", *framework}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_file_but_those_of_integrations_imports_one(path: Path) -> None:
    assert path.parent.name == "integrations" or "trackside.integrations" not in path.read_text()


def _imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    return names
