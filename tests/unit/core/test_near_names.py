"""The names that a person may have meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.near_names import did_you_mean, near_names

RECIPES = ["flux-lora@1", "flux-lora@2", "tiny-lora@1", "llm-lora@1"]


@pytest.mark.parametrize(
    ("wrong", "known", "expected"),
    [
        ("trian", ["train", "trust", "retry"], ["train"]),
        ("CATS", ["cats", "dogs"], ["cats"]),
        ("tiny-lra@1", RECIPES, ["tiny-lora@1"]),
        ("flux", RECIPES, ["flux-lora@1", "flux-lora@2"]),  # the beginning of a name
        ("flx-lora@", RECIPES, ["flux-lora@1", "flux-lora@2"]),
        ("xyzzy", RECIPES, []),
        ("", RECIPES, []),
        ("a" * 100_000, ["a" * 99_999], []),  # comparing takes quadratic time
    ],
)
def test_the_nearest_come_first_and_only_those_that_are_about_as_near(
    wrong: str, known: list[str], expected: list[str]
) -> None:
    assert near_names(wrong, known) == expected


@given(st.text(max_size=30), st.lists(st.text(max_size=30), max_size=8), st.integers(1, 5))
def test_what_is_suggested_is_known(wrong: str, known: list[str], most: int) -> None:
    found = near_names(wrong, known, most=most)
    assert set(found) <= set(known)
    assert len(found) == len(set(found)) <= most


@given(st.text(min_size=1, max_size=30), st.lists(st.text(max_size=30), max_size=8))
def test_a_name_in_another_case_is_found(name: str, known: list[str]) -> None:
    assert near_names(name, [*known, name], most=10)[0].casefold() == name.casefold()


def test_a_hint_has_what_can_be_typed() -> None:
    assert did_you_mean("trian", ["train"], "stationmaster {}") == "did you mean `stationmaster train`?"
    assert did_you_mean("flux", RECIPES, most=3) == "did you mean `flux-lora@1` or `flux-lora@2`?"
    assert did_you_mean("xyzzy", RECIPES) is None
