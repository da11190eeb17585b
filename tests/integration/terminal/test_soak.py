"""Hours of the app in seconds: nothing that it opens stays open."""

from __future__ import annotations

from pathlib import Path

from tests.support.asynchronous_tests import asynchronous
from tests.support.terminal.soak import soak


@asynchronous
async def test_hours_with_machines_that_come_and_go_leave_nothing_behind(tmp_path: Path) -> None:
    """A sample of benchmarks/terminal_soak.py, which runs 50 hours and measures memory: that depends on how much a
    person does in an hour, and that on how busy the computer is."""
    soaked = await soak(
        tmp_path, machines=6, hours=1.0, every_seconds=20.0, factor=600.0, sample_hours=0.2, least_looks=40
    )
    last, before = soaked.vitals[-1], soaked.vitals[:-1]
    assert last.looks >= 40
    assert last.widgets <= max(each.widgets for each in before[:3]) + 30, soaked.vitals
    assert last.tasks <= max(each.tasks for each in before), soaked.vitals
    assert last.threads <= max(each.threads for each in before), soaked.vitals
    assert last.files <= max(each.files for each in before) + 1, soaked.vitals
    assert not soaked.left
