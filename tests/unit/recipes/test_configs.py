"""Config files are written by a serialiser: whatever a value holds, the file reads back with it as one value."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from stationmaster.errors import UserError
from stationmaster.recipes.config_text import Format, config_text
from stationmaster.recipes.parameters import resolve
from stationmaster.recipes.plan import JobIdentity, render_plan
from stationmaster.recipes.reading import check_recipe
from stationmaster.recipes.schema import Recipe
from tests.support.jobs.recipe_texts import small, small_recipe

CONFIG = """\
configs:
  - path: train.yaml
    format: FORMAT
    data:
      steps: "{{ parameters.steps }}"
      quick: "{{ parameters.quick }}"
      rate: "{{ parameters.rate }}"
      title: "run of {{ job.name }}"
      notes: "{{ parameters.note | lines }}"
      trigger: {when: job.trigger, value: "{{ job.trigger }}"}
      inner: {list: [1, {when: parameters.quick, value: 2}]}
steps:
"""
READ: dict[Format, Callable[[str], Any]] = {"yaml": yaml.safe_load, "json": json.loads, "toml": tomllib.loads}
PLAIN = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
SCALAR = st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False, allow_infinity=False) | PLAIN
KEYS = PLAIN.filter(bool)
DATA = st.dictionaries(
    KEYS,
    SCALAR | st.lists(SCALAR) | st.dictionaries(KEYS, SCALAR) | st.lists(st.dictionaries(KEYS, SCALAR), min_size=1),
)


@cache
def recipe_with_config(written_as: str) -> Recipe:
    return small_recipe(("steps:\n  - name", CONFIG.replace("FORMAT", written_as) + "  - name"))


def files_of(written_as: str = "yaml", *, name: str = "demo", trigger: str = "sks", **parameters: object) -> str:
    recipe = recipe_with_config(written_as)
    plan = render_plan(
        recipe,
        parameters=resolve(recipe, parameters),
        job=JobIdentity(id="j1", name=name, trigger=trigger, attempt=1),
        machine_root="/job",
    )
    (file,) = plan.configs
    assert file.path == "config/train.yaml"
    return file.text


@pytest.mark.parametrize("written_as", READ)
def test_a_config_has_typed_values_and_leaves_out_what_does_not_hold(written_as: Format) -> None:
    assert READ[written_as](files_of(written_as, note="a\n\n b", trigger="")) == {
        "steps": 10,
        "quick": False,
        "rate": 1e-4,
        "title": "run of demo",
        "notes": ["a", "b"],
        "inner": {"list": [1]},
    }
    assert READ[written_as](files_of(written_as, quick=True))["inner"] == {"list": [1, 2]}


@pytest.mark.parametrize("written_as", READ)
@given(name=PLAIN, trigger=PLAIN.filter(bool))
@example(name="{{ job.id }}", trigger="${HF_TOKEN}")
@example(name="- a: &b\n  *b", trigger="'\"\\; $(id) \u2028 é 🚂 \x7f\x85")
def test_names_and_triggers_are_data_in_every_format(written_as: Format, name: str, trigger: str) -> None:
    text = files_of(written_as, name=name, trigger=trigger)
    assert "$" not in text, "a trainer could put a secret in its place"
    found = READ[written_as](text)
    assert (found["title"], found["trigger"], found["steps"]) == (f"run of {name}", trigger, 10)


@pytest.mark.parametrize("written_as", READ)
@given(data=DATA)
def test_any_data_reads_back_as_it_was(written_as: Format, data: dict[str, Any]) -> None:
    assert READ[written_as](config_text(data, written_as)) == data


def test_a_yaml_number_in_exponent_form_reads_back_as_a_number() -> None:
    assert yaml.safe_load(config_text({"lr": 1e-5, "text": "1e-5"}, "yaml")) == {"lr": 1e-5, "text": "1e-5"}


def test_what_toml_cannot_hold_is_found_when_the_recipe_is_read() -> None:
    text = small_with("      nothing: null\n", written_as="toml")
    _, (problem,) = check_recipe(text, file="recipe.yaml")
    assert "TOML cannot hold None" in problem.message


@pytest.mark.parametrize("line", ['bad: "{{ parameters.stepz }}"', 'bad: [{when: parameters.stepz, value: "x"}]'])
def test_an_unknown_name_in_a_config_is_found_with_its_line(line: str) -> None:
    text = small_with(f"      {line}\n")
    _, (problem,) = check_recipe(text, file="recipe.yaml")
    assert "unknown name `parameters.stepz`" in problem.message
    assert problem.field.startswith("configs[0].data.bad")
    assert problem.line is not None
    assert line in text.splitlines()[problem.line - 1]


def test_a_nul_in_a_value_is_refused() -> None:
    with pytest.raises(UserError, match="NUL"):
        files_of(trigger="a\0b")


def small_with(line: str, *, written_as: str = "yaml") -> str:
    config = re.sub(r"      inner: .*\n", line, CONFIG.replace("FORMAT", written_as))
    return small(("steps:\n  - name", config + "  - name"))
