"""Parameters are completed with defaults; a wrong one is named with what is allowed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stationmaster.errors import UserError
from stationmaster.recipes.parameters import resolve
from tests.support.jobs.recipe_texts import small_recipe

RECIPE = small_recipe()
DEFAULTS = {"steps": 10, "rate": 0.0001, "note": "", "quick": False, "size": "m"}


def test_what_is_not_given_has_its_default() -> None:
    assert resolve(RECIPE, {}) == DEFAULTS
    assert resolve(RECIPE, {"steps": 20}) == DEFAULTS | {"steps": 20}


def test_text_from_a_command_line_is_read_by_type() -> None:
    given_as_text = {"steps": "20", "rate": "2e-3", "note": "5", "quick": "true", "size": "s"}
    assert resolve(RECIPE, given_as_text) == {"steps": 20, "rate": 0.002, "note": "5", "quick": True, "size": "s"}


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("steps", 0, "a whole number from 1 to 100"),
        ("steps", 101, "a whole number from 1 to 100"),
        ("steps", "ten", "a whole number"),
        ("steps", 1.5, "a whole number"),
        ("steps", True, "a whole number"),
        ("steps", "1_0", "a whole number"),
        ("steps", None, "a whole number"),
        ("rate", -1, "a number of at least 0"),
        ("rate", "nan", "a finite number"),
        ("rate", float("inf"), "a finite number"),
        ("rate", 10**400, "a finite number"),
        ("rate", "fast", "a number"),
        ("note", "x" * 51, "a text of at most 50 characters"),
        ("note", "a\0b", "without NUL"),
        ("note", "\ud800", "without invalid characters"),
        ("note", 5, "a text"),
        ("quick", "yes", "true or false"),
        ("quick", 1, "true or false"),
        ("size", "xl", "one of s, m, on"),
        ("size", ["s"], "one of s, m, on"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(name: str, value: object, allowed: str) -> None:
    with pytest.raises(UserError) as caught:
        resolve(RECIPE, {name: value})
    message = str(caught.value)
    assert message.startswith(f"parameter {name} of small@1: ")
    assert allowed in message
    assert caught.value.hint


def test_an_unknown_parameter_is_named_with_the_nearest_one() -> None:
    with pytest.raises(UserError, match="small@1 has no parameter `stpes`") as caught:
        resolve(RECIPE, {"stpes": 5})
    assert caught.value.hint == "did you mean `steps`?"


def test_a_parameter_without_default_must_be_given() -> None:
    needy = small_recipe(("default: 10, ", ""))
    with pytest.raises(UserError, match="needs the parameter steps: a whole number from 1 to 100"):
        resolve(needy, {})
    assert resolve(needy, {"steps": 3})["steps"] == 3


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(DEFAULTS)), st.text() | st.integers() | st.floats() | st.booleans()))
def test_anything_given_is_either_refused_or_within_the_limits(given_values: dict[str, object]) -> None:
    try:
        values = resolve(RECIPE, given_values)
    except UserError:
        return
    assert list(values) == list(DEFAULTS)
    assert {name: type(value) for name, value in values.items()} == {n: type(v) for n, v in DEFAULTS.items()}
    steps, rate, note = values["steps"], values["rate"], values["note"]
    assert isinstance(steps, int)
    assert isinstance(rate, float)
    assert isinstance(note, str)
    assert 1 <= steps <= 100
    assert 0 <= rate < float("inf")
    assert len(note) <= 50
    assert resolve(RECIPE, values) == values
