"""Thresholds as people set them."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from stationmaster.errors import ConfigInvalid
from stationmaster.watch.policy import StallPolicy

DOCS = Path(__file__).parents[3] / "docs/explanation/how-trainings-are-watched.md"


@pytest.mark.parametrize(
    "settings",
    [{"min_windo": "5m"}, {"min_window": "soon"}, {"min_samples": -1}, {"enabled": "maybe"}, {"grace": None}],
)
def test_a_wrong_setting_is_named_in_one_line_with_a_hint(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        StallPolicy().changed(settings)
    assert f"stall.{next(iter(settings))}" in str(caught.value)
    assert caught.value.hint
    assert "\n" not in str(caught.value)


def test_whole_numbers_stay_whole_and_switches_read_as_people_write_them() -> None:
    policy = StallPolicy().changed({"min_samples": "3", "enabled": "off"})
    assert policy.min_samples == 3
    assert isinstance(policy.min_samples, int)
    assert policy.enabled is False
    assert policy.changed({"enabled": "Yes"}).enabled is True


def test_the_docs_name_every_time_that_does_not_scale_with_the_window() -> None:
    text = DOCS.read_text(encoding="utf-8")
    times = {item.name for item in fields(StallPolicy) if item.metadata.get("unit") == "seconds"}
    assert {name for name in times if f"`{name}`" not in text} == set()
