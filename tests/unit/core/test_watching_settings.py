"""What a person sets about the watching is checked at the door: a worker that meets a wrong name cannot watch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stationmaster.config import load_settings, read_monitoring
from stationmaster.errors import ConfigInvalid

WRONG = [
    ({"stallDetection": {"thresholds": {"nope": 1}}}, "stall.nope is not a setting"),
    ({"stall_detection": {"thresholds": {"min_window": "soon"}}}, "stall.min_window"),
    ({"reactions": {"nan_loss": "explode"}}, "unknown reaction to nan_loss: 'explode'"),
    ({"reactions": {"nan": "stop"}}, "unknown anomaly: nan"),
]


@pytest.mark.parametrize(("block", "said"), WRONG)
def test_a_jobs_own_block(block: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigInvalid, match=said) as told:
        read_monitoring(block)
    assert told.value.hint


def test_the_installations_settings(tmp_path: Path) -> None:
    environ = {"STATIONMASTER_HOME": str(tmp_path), "STATIONMASTER_MONITORING__REACTIONS": '{"nan_loss": "explode"}'}
    with pytest.raises(ConfigInvalid, match="unknown reaction to nan_loss"):
        load_settings(environ, folder=tmp_path)


def test_what_is_right_is_taken() -> None:
    block = {"stall_detection": {"thresholds": {"min_window": "5m"}}, "reactions": {"nan_loss": "stop"}}
    assert read_monitoring(block) == block
