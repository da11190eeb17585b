"""Pages avoid wordings that a reader has to decode.

The reference pages contain the help of all commands and the texts of all settings, so these are checked too.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.docs_pages import PAGES, name_of

PLAIN_PAGES = [page for page in PAGES if page.name != "CHANGELOG.md" and page.parent.name != "decisions"]
DECODED = re.compile(
    r"\b(so (long|many) (after|before|as)|so (long|many)\.|(no|some|any)body"
    r"|(bring|brings|brought|come|comes|came) home|for good\b(?! measure)|needs? a hand|is ended|as ever|all told"
    r"|(files?|models?|datasets?) lies?|gives? (it|the machine) back|(is|are) given back)",
    re.IGNORECASE,
)


@pytest.mark.parametrize("page", PLAIN_PAGES, ids=name_of)
def test_a_page_uses_standard_terms(page: Path) -> None:
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert [match.group() for match in DECODED.finditer(text)] == []
