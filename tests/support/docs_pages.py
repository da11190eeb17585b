"""The pages that people read, and the samples in them that can be run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import dedent

from tests.support.programs import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

_SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SAMPLE = r"^ *<!-- {} -->\n *```(sh|python)\n(.*?)^ *```$"
RUN, RUN_WITH_SERVER = "run", "run with a server"
_PYTHON = re.compile(r"^(?: *<!-- (?P<mark>[^\n]*?) -->\n)? *```python\n(?P<code>.*?)^ *```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def samples(page: Path, mark: str = RUN) -> list[str]:
    """Blocks marked `<!-- run -->` as shell commands, in order: shell as it is, Python as a program for `python`."""
    pattern = re.compile(_SAMPLE.format(mark), re.MULTILINE | re.DOTALL)
    found = [(language, dedent(block)) for language, block in pattern.findall(page.read_text(encoding="utf-8"))]
    return [block if language == "sh" else f"python - <<'END'\n{block}END\n" for language, block in found]


@dataclass(frozen=True)
class PythonBlock:
    page: Path
    line: int
    mark: str
    code: str


def python_blocks(page: Path) -> list[PythonBlock]:
    """Every Python block of a page, with the mark before it: how it is run, or why it is not."""
    text = page.read_text(encoding="utf-8")
    return [
        PythonBlock(page, text.count("\n", 0, found.start("code")), found["mark"] or "", dedent(found["code"]))
        for found in _PYTHON.finditer(text)
    ]


def shell_blocks(page: Path) -> list[str]:
    """Everything that the page tells its reader to type, in order, marked or not."""
    return _SHELL.findall(page.read_text(encoding="utf-8"))


def links(page: Path) -> list[str]:
    """Where the page points at inside the repository: `path`, `path#anchor` or `#anchor`."""
    return [target for target in _LINK.findall(_without_code(page)) if "://" not in target]


def dead_links(page: Path) -> list[str]:
    """Those that lead to no file, or to no heading of it."""
    return [link for link in links(page) if not _leads_somewhere(page, link)]


def _leads_somewhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    return target.exists() and (not anchor or anchor in _anchors(target))


@cache
def _anchors(page: Path) -> set[str]:
    """What `page.md#…` may name, as GitHub makes it from headings."""
    headings = _HEADING.findall(_without_code(page))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _without_code(page: Path) -> str:
    return _CODE.sub("", page.read_text(encoding="utf-8"))
