"""Every trainer's output is read as a careful person would read it."""

from __future__ import annotations

import pytest

from stationmaster.parsers import FAMILIES, LogReader
from tests.support.watching.training_logs import NAMES, differences, expected, log_bytes


@pytest.mark.parametrize("name", NAMES)
def test_a_log_is_read_field_by_field_as_a_careful_person_would(name: str) -> None:
    reader = LogReader()
    reader.feed(log_bytes(name))
    assert differences(expected(name), reader.summary().as_json()) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_right_hint_changes_nothing_that_is_read(name: str) -> None:
    reader = LogReader(framework=name.split("/")[0])
    reader.feed(log_bytes(name))
    assert differences(expected(name), reader.summary().as_json()) == []


def test_there_are_logs_for_every_family() -> None:
    assert {name.split("/")[0] for name in NAMES} == {family.name for family in FAMILIES}
