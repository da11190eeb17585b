"""Columns of JSON: what was written is read back, whatever text and numbers came from outside."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.store.json_text import dumps, loads
from stationmaster.store.storable_text import is_storable

# With lone surrogates, as Python reads bytes that are not text.
ANY_TEXT = st.text(st.characters(codec="utf-8") | st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | ANY_TEXT
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner))


@given(VALUES)
def test_what_was_written_is_read_back_and_every_engine_can_store_it(value: Any) -> None:
    text = dumps(value)
    assert is_storable(text)
    assert loads(text) == json.loads(text) == value


@given(VALUES)
def test_texts_of_older_versions_are_read(value: Any) -> None:
    assert loads(json.dumps(value)) == value


@pytest.mark.parametrize("depth", [100, 500])
def test_however_deep(depth: int) -> None:
    value: Any = "ground"
    for _ in range(depth):
        value = [value]
    assert loads(dumps(value)) == value


def test_what_is_no_json_is_an_error() -> None:
    with pytest.raises(ValueError, match="char 1"):
        loads("{")
    with pytest.raises(TypeError):
        dumps(object())
