"""The page of rules names every rule of the code, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.programs import ROOT

RULES = ROOT / "src" / "stationmaster" / "analysis" / "rules"
PAGE = ROOT / "docs" / "reference" / "analysis.md"
MADE_OF_PARTS = {"crash_missing_model", "crash_missing_dataset", "sampling_time", "saving_time"}
"""Their names are put together, or handed over, in the code."""
LEAST_RULES = 24


def rules_in(folder: Path) -> set[str]:
    text = "\n".join(path.read_text() for path in folder.glob("*.py"))
    return set(re.findall(r'rule="([a-z_]+)"', text)) | MADE_OF_PARTS


def test_the_page_names_every_rule_and_no_other() -> None:
    rules = rules_in(RULES)
    tables = re.findall(r"^\| ((?:`[a-z_]+`(?:, )?)+) \|", PAGE.read_text(), re.MULTILINE)
    named = {name for cell in tables for name in re.findall(r"`([a-z_]+)`", cell)}
    assert named == rules


def test_there_are_rules_for_many_causes() -> None:
    assert len(rules_in(RULES)) >= LEAST_RULES
