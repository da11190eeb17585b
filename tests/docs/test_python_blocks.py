"""Every Python program on the pages is run, or its page says why not; even then what it imports of us exists."""

from __future__ import annotations

import ast
import re

import pytest

from tests.support.docs_pages import PAGES, RUN, RUN_WITH_SERVER, PythonBlock, name_of, python_blocks
from tests.support.programs import ROOT

BLOCKS = [block for page in PAGES for block in python_blocks(page)]
_NOT_RUN = re.compile(r"not run: \S.+")
_OURS = ("stationmaster", "trackside")


def _name(block: PythonBlock) -> str:
    return f"{name_of(block.page)}:{block.line}"


@pytest.mark.parametrize("block", BLOCKS, ids=_name)
def test_a_block_is_run_or_says_why_not(block: PythonBlock) -> None:
    """Blocks with the marks `run` and `run with a server` are run by test_samples.py and test_api_samples.py."""
    assert block.mark in (RUN, RUN_WITH_SERVER) or _NOT_RUN.fullmatch(block.mark), (
        f"{_name(block)}: write <!-- run --> before it, or <!-- not run: REASON -->"
    )


@pytest.mark.parametrize("block", [block for block in BLOCKS if _NOT_RUN.fullmatch(block.mark)], ids=_name)
def test_a_block_that_is_not_run_compiles_and_imports_what_there_is(block: PythonBlock) -> None:
    imports = [node for node in ast.walk(ast.parse(block.code)) if isinstance(node, ast.ImportFrom)]
    for found in imports:
        module = found.module or ""
        if module.split(".")[0] in _OURS:
            source = (ROOT / "src" / module.replace(".", "/")).with_suffix(".py").read_text(encoding="utf-8")
            assert {alias.name for alias in found.names} <= _defined(source)


def _defined(source: str) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef | ast.FunctionDef)}


def test_there_are_such_blocks() -> None:
    assert len(BLOCKS) > 8
    assert any(block.mark == RUN for block in BLOCKS)
