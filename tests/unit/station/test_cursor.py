"""Cursors of pages."""

from __future__ import annotations

import base64
import json

import pytest

from stationmaster.errors import UserError
from stationmaster.station.cursor import cursor_behind, place_of


@pytest.mark.parametrize("at", [0.0, 1_700_000_000.123456789, 5e-324, -1.5])
def test_a_cursor_holds_its_place_exactly(at: float) -> None:
    assert place_of(cursor_behind(at, "a/b ☃", "gpu"), names=2) == (at, ["a/b ☃", "gpu"])


def made_of(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


@pytest.mark.parametrize(
    "cursor",
    [
        "", "x", "é", "=", "%00", "AAAA" * 100, made_of([1.5]), made_of([1.5, 2]), made_of(["a", "b"]),
        made_of([True, "a"]), made_of({"a": 1}), made_of(None), made_of([float("nan"), "a"]), made_of([1.5, "a\0"]),
        made_of([10**400, "a"]), made_of([1.5, "\ud800"]), made_of([[[[]]]]), "[" * 400,
    ],
)  # fmt: skip
def test_any_other_text_is_refused_in_one_line(cursor: str) -> None:
    with pytest.raises(UserError, match="not the cursor of a page"):
        place_of(cursor, names=1)
