"""Files as a machine tells of them: a hash is a hash and a size a size, or the answer makes no sense."""

from __future__ import annotations

from typing import Any

import pytest

from stationmaster.remote.status import parse_output

GOOD: dict[str, Any] = {"path": "output/m.safetensors", "kind": "checkpoint", "size": 7, "sha256": "0a" * 32}


def test_a_file_is_read_as_it_was_told() -> None:
    assert (parse_output(GOOD).size, parse_output(GOOD).sha256) == (7, "0a" * 32)
    assert parse_output({**GOOD, "sha256": None}).sha256 is None


@pytest.mark.parametrize(
    "lie",
    [
        {"sha256": "x/../../../../home"},
        {"sha256": "0A" * 32},
        {"sha256": "0a" * 31},
        {"sha256": "0a" * 32 + "\n"},
        {"sha256": 7},
        {"size": -1},
        {"size": "many"},
        {"size": None},
    ],
)
def test_what_would_become_a_path_or_a_length_at_home_is_checked_first(lie: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"SHA-256|negative|whole number"):
        parse_output({**GOOD, **lie})
