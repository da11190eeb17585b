"""A script gets its values as arguments: nothing in them is ever read by the shell."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stationmaster.recipes.parameters import resolve
from stationmaster.recipes.plan import JobIdentity, render_plan
from stationmaster.recipes.reading import check_recipe
from tests.support.jobs.recipe_texts import small, small_recipe

ARGV = """\
    argv:
      - trainer
      - "{{ job.name }}"
      - "--note={{ parameters.note }}"
      - {when: parameters.quick, argv: [--quick, "{{ parameters.steps }}"]}
"""
SHELL = "    shell: printf '%s|' {{ job.name }} --note={{ job.trigger }} {{ job.name }}x\n"
SCRIPTED = small_recipe((ARGV, SHELL))
PLAIN = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)


@given(name=PLAIN, trigger=PLAIN)
@example(name="$(touch /tmp/x); `id`", trigger="a'b\"c\n; exit 3 #")
@example(name="*", trigger='{{ job.id }} "${1}"')
def test_a_real_shell_hands_every_value_on_as_one_word(name: str, trigger: str) -> None:
    recipe = SCRIPTED
    plan = render_plan(
        recipe,
        parameters=resolve(recipe, {}),
        job=JobIdentity(id="j", name=name, trigger=trigger, attempt=1),
        machine_root="/job",
    )
    done = subprocess.run(plan.steps[0].argv, capture_output=True, check=True)
    assert done.stdout.decode() == f"{name}|--note={trigger}|{name}x|"


@pytest.mark.parametrize("script", ['echo "{{ job.name }}"', "echo '{{ job.name }}'", "echo \"a\" 'b {{ job.name }}'"])
def test_a_value_inside_quotes_is_refused(script: str) -> None:
    _, (problem,) = check_recipe(small((ARGV, f"    shell: |\n      {script}\n")), file="recipe.yaml")
    assert problem.field == "steps[0].shell"
    assert "write it outside" in problem.message


def test_a_value_beside_quotes_and_after_an_escaped_quote_is_fine() -> None:
    script = '    shell: |\n      echo "a b"{{ job.name }}\'c\' \\" {{ job.id }}\n'
    assert check_recipe(small((ARGV, script)), file="recipe.yaml")[1] == []


@pytest.mark.parametrize("change", [(ARGV, ""), (ARGV, ARGV + "    shell: echo\n")])
def test_a_step_has_one_command_and_not_two(change: tuple[str, str]) -> None:
    _, (problem,) = check_recipe(small(change), file="recipe.yaml")
    assert "either `argv` or `shell`" in problem.message


def test_bootstrap_and_health_come_before_the_steps() -> None:
    more = "bootstrap:\n  - {name: fetch, shell: 'true'}\nhealth: {argv: [look, '{{ job.id }}'], timeout: 1m}\nsteps:\n"
    recipe = small_recipe(("steps:\n  - name", more + "  - name"))
    plan = render_plan(
        recipe,
        parameters=resolve(recipe, {}),
        job=JobIdentity(id="j", name="n", trigger="", attempt=1),
        machine_root="/job",
    )
    assert [step.name for step in plan.steps] == ["fetch", "health", "train"]
    assert plan.steps[1].argv == ("look", "j")


@pytest.mark.parametrize("field", ["secrets: [HF_TOKEN]", "training: true"])
def test_a_bootstrap_step_gets_no_secrets_and_does_not_train(field: str) -> None:
    more = f"bootstrap:\n  - {{name: fetch, argv: ['true'], {field}}}\nsteps:\n"
    _, (problem,) = check_recipe(small(("steps:\n  - name", more + "  - name")), file="recipe.yaml")
    assert "cannot train and gets no secrets" in problem.message
