"""Policies for tests: the defaults, with single settings changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stationmaster.control.flow.policy import Policy


def changed(policy: Policy | None = None, **changes: Any) -> Policy:
    """`policy`, or the defaults, with other values; a dict changes settings of that section, in our units."""
    base = policy or Policy()
    values = {
        name: getattr(base, name).model_copy(update=value) if isinstance(value, dict) else value
        for name, value in changes.items()
    }
    return replace(base, **values)
