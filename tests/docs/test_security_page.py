"""The threat table names every test of hostile input, and no test that does not exist."""

from __future__ import annotations

import re
from pathlib import Path

from stationmaster.model import intake_limits
from stationmaster.settings import Settings
from tests.support.programs import ROOT

SETTINGS = Settings(home=Path())
PAGE = (ROOT / "docs" / "explanation" / "security.md").read_text(encoding="utf-8")


def test_every_test_of_hostile_input_has_a_row_and_every_row_its_tests() -> None:
    named = set(re.findall(r"`(tests/[\w/]+\.py)`", PAGE))
    written = {str(path.relative_to(ROOT)) for path in Path(ROOT, "tests", "hostile").glob("test_*.py")}
    assert named == written


def test_the_limits_on_the_page_are_those_of_the_code() -> None:
    mib = intake_limits.MIB
    files = SETTINGS.artifacts.cap_bytes
    shown = [
        f"{intake_limits.ANSWER_BYTES // mib} MiB; status {intake_limits.VERB_BYTES['status'] // mib} MiB, "
        f"inventory {intake_limits.VERB_BYTES['inventory'] // mib} MiB; {intake_limits.JSON_VALUES:,} values",
        f"{intake_limits.PLAN_STEPS} steps, {intake_limits.LOG_STREAMS} logs, {intake_limits.OUTPUT_FILES:,} outputs, "
        f"{intake_limits.SERIES_VALUES:,} measured values",
        f"{files // 2**30} GiB in all",
        f"{intake_limits.JOB_READINGS:,} readings, {intake_limits.JOB_EVENTS:,} events, "
        f"{intake_limits.JOB_CHECKPOINTS:,} checkpoints",
        f"`log_cap_bytes` ({SETTINGS.log_cap_bytes // mib} MiB), "
        f"`metrics.cap_bytes` ({SETTINGS.metrics.cap_bytes // mib} MiB)",
    ]
    assert [line for line in shown if line not in PAGE] == []
