"""What other settings would need, by what a run used."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.analysis.configs.ai_toolkit import resolutions
from stationmaster.analysis.rules.room import (
    MOST_SHARE,
    fitting_batch,
    larger_card,
    larger_memory,
    needed_for_batch,
    smaller_resolution,
    smaller_side,
)


@given(base=st.floats(0, 20), extra=st.floats(0.1, 60), batch=st.integers(1, 64))
def test_the_batch_that_fits_is_predicted_to_stay_below_nine_tenths(base: float, extra: float, batch: int) -> None:
    size, need = 24.0, base + extra
    best = fitting_batch(size_gb=size, base_gb=base, need_gb=need, batch=batch)
    assert best >= 1
    if best > 1:
        assert needed_for_batch(best, base_gb=base, need_gb=need, batch=batch) <= MOST_SHARE * size


@pytest.mark.parametrize(
    ("value", "lower"),
    [
        ([512, 768, 1024], [512, 768]),
        ([512, 1536], [512]),
        (1024, 896),
        ([1024], [896]),
        ("1024,1024", "896,896"),
        (512, None),
        ([512], None),
    ],
)
def test_a_smaller_resolution_keeps_the_form_of_the_config(value: Any, lower: Any) -> None:
    assert smaller_resolution(value, size_gb=24, base_gb=10, need_gb=24) == lower


@given(
    value=st.one_of(
        st.integers(513, 4096),
        st.lists(st.integers(256, 2048), min_size=2, max_size=5),
        st.integers(513, 4096).map(lambda side: f"{side},{side}"),
    ),
    need=st.floats(11, 200),
)
def test_a_smaller_resolution_is_always_smaller(value: Any, need: float) -> None:
    lower = smaller_resolution(value, size_gb=24, base_gb=10, need_gb=need)
    assert lower is None or max(resolutions(lower)) < max(resolutions(value))


def test_a_larger_card_holds_the_need_and_a_larger_memory_too() -> None:
    assert larger_card(26, size_gb=24) == 32
    assert larger_card(46, size_gb=47.99) == 80
    assert larger_card(500, size_gb=200) is None
    assert larger_memory(62, size_gb=62) >= 62 / MOST_SHARE


def test_a_smaller_picture_is_a_multiple_of_64_or_none() -> None:
    assert smaller_side(1536, factor=0.5) == 1024
    assert smaller_side(256, factor=0.5) is None
    assert smaller_side(1024, factor=-1) is None
