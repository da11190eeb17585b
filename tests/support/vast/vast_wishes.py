"""Settings of Vast.ai for tests: without preferences, except those that a test names."""

from __future__ import annotations

from typing import Any

from stationmaster.money import from_dollars
from stationmaster.settings import VastSettings

_ANY_MACHINE = {"preferred_gpus": (), "min_vram_gb": 0.0, "max_bid_per_hour": from_dollars(1000)}


def vast_settings(**changes: Any) -> VastSettings:
    """The defaults, but any GPU at any price will do; `changes` are settings by name, in our units."""
    return VastSettings().model_copy(update={**_ANY_MACHINE, **changes})
