"""Thresholds as people set them."""

from __future__ import annotations

import pytest

from stationmaster.errors import ConfigInvalid
from stationmaster.watch.policy import StallPolicy


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
