"""Values in templates are data: whatever they contain comes out as it went in."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stationmaster.recipes.templating import (
    TemplateFault,
    check_expression,
    check_template,
    evaluate,
    filename,
    render,
)

NAMES = {"job": frozenset({"name"}), "parameters": frozenset({"steps", "quick"})}
HOSTILE = ["'; rm -rf / #", '"', "$(id)", "`id`", "a\nb", "a;b", "../../etc", "{{ 7 * 7 }}", "{% if 1 %}", "é\u202e🚂"]


@settings(deadline=None)
@given(st.text() | st.sampled_from(HOSTILE))
@example("{{ job.name }}")
def test_a_value_is_put_in_as_it_is_and_never_read_as_a_template(value: str) -> None:
    assert render("<{{ job.name }}>", {"job": {"name": value}}) == f"<{value}>"


@settings(deadline=None)
@given(st.text())
def test_a_file_name_is_one_safe_component(value: str) -> None:
    name = filename(value)
    assert 0 < len(name.encode()) <= 80
    assert name not in (".", "..")
    assert name[0] not in ".-"
    assert not set(name) & set("/\\\0*?[]{}$`'\"\n ;|&<>")


def test_true_and_false_are_written_as_trainers_read_them() -> None:
    assert render("{{ parameters.quick }}", {"parameters": {"quick": True}}) == "true"


@pytest.mark.parametrize(
    "text",
    [
        "{{ job.name.__class__ }}",
        "{{ job['name'] }}",
        "{{ ''.join(job.name) }}",
        "{{ cycler }}",
        "{{ namespace() }}",
        "{% for x in job.name %}{% endfor %}",
        "{% set x = 1 %}",
        "{% include 'x' %}",
        "{% macro m() %}{% endmacro %}",
        "{{ job.name | attr('x') }}",
        "{{ 2 ** 99 }}",
        "{{ other.name }}",
        "{% if job.x %}{% endif %}",
        "{{",
    ],
)
def test_what_a_template_may_not_do_is_refused_when_checked(text: str) -> None:
    with pytest.raises(TemplateFault):
        check_template(text, NAMES)


@pytest.mark.parametrize("text", ["plain", "{{ job.name | filename }}", "{% if parameters.quick %}q{% endif %}"])
def test_what_a_template_may_do_passes(text: str) -> None:
    check_template(text, NAMES)


def test_an_expression_has_a_value() -> None:
    check_expression("parameters.steps > 5 and not parameters.quick", NAMES)
    assert evaluate("parameters.steps > 5", {"parameters": {"steps": 6}}) is True


def test_an_expression_is_only_one() -> None:
    with pytest.raises(TemplateFault):
        check_expression("parameters.steps parameters.quick", NAMES)


@pytest.mark.parametrize("text", ["parameters.gone", "1 / 0", "parameters.steps + 'x'", "gone"])
def test_an_expression_without_a_value_is_a_fault(text: str) -> None:
    with pytest.raises(TemplateFault, match="has no value"):
        evaluate(text, {"parameters": {"steps": 1}})
