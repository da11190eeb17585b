"""A recipe's text becomes a recipe, or a list of problems with line, field and fix."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stationmaster.documents import Unreadable, read_document
from stationmaster.errors import RecipeInvalid
from stationmaster.recipes.reading import check_recipe, read_recipe
from stationmaster.recipes.schema import ChoiceParameter, json_schema
from tests.support.jobs.recipe_texts import SMALL, small, small_recipe


def test_a_valid_recipe_is_read_with_its_durations_and_numbers() -> None:
    recipe = small_recipe()
    assert recipe.reference == "small@1"
    assert recipe.training_step.timeout == 5400.0
    assert recipe.parameters["rate"].default == 0.0001
    size = recipe.parameters["size"]
    assert isinstance(size, ChoiceParameter)
    assert size.choices == ("s", "m", "on")


def test_json_is_read_like_yaml() -> None:
    data = read_document(SMALL, is_json=False).data
    assert read_recipe(json.dumps(data), file="recipe.json") == small_recipe()


@pytest.mark.parametrize(
    ("change", "line", "field", "says", "fix"),
    [
        (("title: A small recipe\n", ""), 1, "title", "field required", "add `title:`"),
        (("title:", "titel: x\ntitle:"), 3, "titel", "extra inputs are not permitted", "did you mean `title`?"),
        (("version: 1", "version: one"), 2, "version", "valid integer", None),
        (("version: 1", "version: 1.5"), 2, "version", "valid integer", None),
        (("timeout: 1h30m", "timeout: soon"), 20, "steps[0].timeout", "'soon' is not a duration", None),
        (("timeout: 1h30m", "timeot: 1h"), 20, "steps[0].timeot", "extra inputs", "did you mean `timeout`?"),
        (("timeout: 1h30m", "tries: 4"), 20, "steps[0].tries", "less than or equal to 3", "write 3 or less"),
        (("timeout: 1h30m", "tries: 0"), 20, "steps[0].tries", "greater than or equal to 1", "write 1 or more"),
        (("- trainer", "- 5"), 15, "steps[0].argv[0]", "valid string", 'write it as text: "5"'),
        (("kind: checkpoint", "kind: model"), 23, "outputs[0].kind", "'checkpoint'", "write "),
        (("pattern: output/*", "pattern: ../*"), 23, "outputs[0].pattern", "inside the job's folder", None),
        (("pattern: output/*", "pattern: /output/*"), 23, "outputs[0].pattern", "inside the job's folder", None),
        (("_(\\d+)", "_\\d+"), 23, "outputs[0].step", "exactly one group", None),
        (("default: 10, min", "default: 0, min"), 6, "parameters.steps.default", "from 1 to 100", None),
        (("default: m", "default: xl"), 10, "parameters.size.default", "one of s, m, on", None),
        (("type: bool", "type: maybe"), 9, "parameters.quick", "'maybe'", None),
        (("training: true", "training: false"), 1, "", "exactly one step needs `training: true`", None),
        (("kind: checkpoint", "kind: log"), 1, "", "of kind checkpoint", None),
    ],
)
def test_each_mistake_is_told_with_line_field_and_fix(
    change: tuple[str, str], line: int, field: str, says: str, fix: str | None
) -> None:
    _, problems = check_recipe(small(change), file="recipe.yaml")
    (problem,) = problems
    assert (problem.line, problem.field) == (line, field)
    assert says in problem.message
    assert problem.fix == fix or (fix is not None and problem.fix is not None and problem.fix.startswith(fix))


@pytest.mark.parametrize(
    ("change", "line", "field", "says"),
    [
        (("{{ job.name }}", "{{ job.nmae }}"), 16, "steps[0].argv[1]", "unknown name `job.nmae`"),
        (("{{ job.name }}", "{{ secret }}"), 16, "steps[0].argv[1]", "unknown name `secret`"),
        (("{{ job.name }}", "{{ job }}"), 16, "steps[0].argv[1]", "unknown name `job`"),
        (("parameters.note", "parameters.items"), 17, "steps[0].argv[2]", "unknown name `parameters.items`"),
        (("when: parameters.quick", "when: parameters.quik"), 18, "steps[0].argv[3].when", "parameters.quik"),
        (("when: parameters.quick", "when: 1 +"), 18, "steps[0].argv[3].when", "not an expression"),
        (("when: parameters.quick", "when: '1 }} x'"), 18, "steps[0].argv[3].when", "expression"),
        (("{{ parameters.steps }}", "{{ parameters.stps }}"), 18, "steps[0].argv[3].argv[1]", "parameters.stps"),
        (("{{ job.trigger }}", "{{ job.trigger"), 19, "steps[0].env.TRIGGER", "not a template"),
        (("| filename", "| shell"), 21, "steps[0].expect[0]", "shell"),
        (("{{ resume.checkpoint }}", "{{ resume.x }}"), 25, "resume.argv[1]", "unknown name `resume.x`"),
        (("seconds_per_step: 2.0", "seconds_per_step: job.id"), 26, "time.seconds_per_step", "unknown name `job.id`"),
    ],
)
def test_an_unknown_name_is_found_when_the_recipe_is_read(
    change: tuple[str, str], line: int, field: str, says: str
) -> None:
    _, problems = check_recipe(small(change), file="recipe.yaml")
    (problem,) = problems
    assert (problem.line, problem.field) == (line, field)
    assert says in problem.message


def test_what_only_shows_when_filled_in_is_found_too() -> None:
    _, problems = check_recipe(small(("{{ job.name }}", "{{ job.name + 1 }}")), file="recipe.yaml")
    assert "cannot be rendered" in problems[0].message


def test_an_expected_file_cannot_leave_the_folder() -> None:
    _, problems = check_recipe(small(("output/{{ job.name | filename }}", "../{{ job.name }}")), file="recipe.yaml")
    assert "inside the job's folder" in problems[0].message


def test_the_error_names_the_first_problem_and_where_to_find_the_others() -> None:
    text = small(("title: A small recipe\n", ""), ("version: 1", "version: x"))
    with pytest.raises(RecipeInvalid, match=r"recipe\.yaml:2: version: ") as caught:
        read_recipe(text, file="recipe.yaml")
    assert "run `stationmaster recipes lint recipe.yaml` for 1 more" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [1", "not YAML"),
        ("a: 1\na: 2", "`a` is given twice"),
        ("a: &x [1]\nb: *x", "aliases"),
        ("a: !!python/object/apply:os.system [ls]", "not allowed"),
        ("a: !mine x", "tag"),
        ("? [1]\n: 2", "plain text"),
        ("a: \x00", "not YAML"),
        ("[" * 500_000, "nested too deeply"),
        ("a: " + "[" * 40 + "]" * 40, "nested too deeply"),
        ("x" * 1_000_001, "larger"),
    ],
)
def test_a_text_that_is_no_document_is_refused(text: str, says: str) -> None:
    with pytest.raises(Unreadable, match=says):
        read_document(text, is_json=False)


def test_values_mean_what_they_look_like() -> None:
    data = read_document("[yes, on, 2020-01-01, 0x1f, 1_000, 1e-4, 007, .5, true, ~, '1']", is_json=False).data
    assert data == ["yes", "on", "2020-01-01", "0x1f", "1_000", 1e-4, 7, 0.5, True, None, "1"]


@settings(deadline=None)
@given(st.text() | st.lists(st.sampled_from(SMALL.splitlines())).map("\n".join))
def test_any_text_gives_a_recipe_or_problems(text: str) -> None:
    recipe, problems = check_recipe(text, file="recipe.yaml")
    assert recipe is not None or problems


@settings(deadline=None)
@given(st.integers(0, len(SMALL) - 1), st.integers(1, 60))
def test_a_recipe_with_a_hole_gives_a_recipe_or_problems(start: int, length: int) -> None:
    recipe, problems = check_recipe(SMALL[:start] + SMALL[start + length :], file="recipe.yaml")
    assert recipe is not None or problems


def test_the_json_schema_is_published_with_the_meaning_of_the_fields() -> None:
    schema = json_schema()
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == {"name", "version", "title", "description", "steps", "outputs", "time"}
    assert schema["properties"]["files"]["description"].startswith("Files beside recipe.yaml")
    json.dumps(schema)
