"""A recipe filled in for a job is a plan that trackside can run, with every value as data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stationmaster.errors import UserError
from stationmaster.recipes.outputs import output_of, step_of
from stationmaster.recipes.parameters import resolve
from stationmaster.recipes.plan import JobIdentity, Plan, render_plan
from stationmaster.recipes.plan_steps import training_places
from stationmaster.recipes.registry import find
from stationmaster.recipes.schema import OutputKind, inside
from tests.support.jobs.recipe_texts import small_recipe

GOLDEN = Path(__file__).parent / "tiny_lora_plan.json"
RECIPE = small_recipe()
HOSTILE = ["'; rm -rf / #", '"', "$(id)", "`id`", "a\nb", "a;b", "../../etc", "{{ 7 * 7 }}", "--steps=1", "é\u202e🚂"]
PLAIN = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


def plan_of(*, name: str = "demo", trigger: str = "sks", resume: str | None = None, **parameters: object) -> Plan:
    return render_plan(
        RECIPE,
        parameters=resolve(RECIPE, parameters),
        job=JobIdentity(id="j1", name=name, trigger=trigger, attempt=2),
        machine_root="/opt/jobs/j1",
        resume_from=resume,
    )


def test_the_plan_of_tiny_lora_is_as_it_was() -> None:
    recipe = find("tiny-lora@1").recipe
    plan = render_plan(
        recipe,
        parameters=resolve(recipe, {"fault": "crash", "fault_tries": 1}),
        job=JobIdentity(id="01JOB", name="My portrait", trigger="sks", attempt=1),
        machine_root="/opt/stationmaster/jobs/01JOB",
        resume_from="resume/old_000000200.safetensors",
    )
    assert plan.as_json() == json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_arguments_under_a_condition_are_there_only_when_it_holds() -> None:
    assert plan_of().steps[0].argv == ("trainer", "demo", "--note=")
    assert plan_of(quick=True, steps=7).steps[0].argv == ("trainer", "demo", "--note=", "--quick", "7")


@pytest.mark.parametrize(
    "further",
    [
        "",
        "health: {argv: [check]}\n",
        "runtime: podman\ncontainer: {image: x}\n",
        "bootstrap:\n  - {name: a, argv: [a], timeout: 1m}\n  - {name: b, argv: [b], timeout: 1m}\n"
        "health: {argv: [check]}\nruntime: podman\ncontainer: {image: x}\n",
    ],
    ids=["alone", "health", "image", "all"],
)
def test_the_place_of_the_training_is_known_without_the_plan(further: str) -> None:
    recipe = small_recipe(("steps:\n  - name", f"{further}steps:\n  - name"))
    identity = JobIdentity(id="j", name="n", trigger="t", attempt=1)
    plan = render_plan(recipe, parameters=resolve(recipe, {}), job=identity, machine_root="/job")
    assert training_places(recipe) == [place for place, step in enumerate(plan.steps) if step.training]


def test_a_checkpoint_to_go_on_from_adds_the_resume_arguments() -> None:
    assert plan_of(resume="resume/a.safetensors").steps[0].argv[-2:] == ("--from", "/opt/jobs/j1/resume/a.safetensors")
    assert plan_of(resume="/elsewhere/a.safetensors").steps[0].argv[-1] == "/elsewhere/a.safetensors"


def test_a_recipe_that_cannot_resume_says_so() -> None:
    stubborn = small_recipe(('resume:\n  argv: [--from, "{{ resume.checkpoint }}"]\n', ""))
    with pytest.raises(UserError, match="small@1 cannot resume from a checkpoint"):
        render_plan(
            stubborn,
            parameters=resolve(stubborn, {}),
            job=JobIdentity(id="j", name="n", trigger="t", attempt=1),
            machine_root="/job",
            resume_from="a.safetensors",
        )


@settings(deadline=None)
@given(
    name=PLAIN | st.sampled_from(HOSTILE),
    trigger=PLAIN | st.sampled_from(HOSTILE),
    note=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=50)
    | st.sampled_from(HOSTILE),
)
@example(name="{{ job.id }}", trigger="{% raw %}", note="$(id)")
def test_names_triggers_and_parameters_stay_single_arguments(name: str, trigger: str, note: str) -> None:
    (step,) = plan_of(name=name, trigger=trigger, note=note).steps
    assert step.argv == ("trainer", name, f"--note={note}")
    assert step.env == {"TRIGGER": trigger}
    (expected,) = step.expect
    assert inside(expected) == expected
    assert expected.count("/") == 1


@pytest.mark.parametrize("broken", ["a\0b", "\ud800"])
def test_a_name_that_cannot_be_an_argument_is_refused(broken: str) -> None:
    with pytest.raises(UserError, match="NUL or invalid characters"):
        plan_of(name=broken)


def test_the_job_folder_must_be_absolute() -> None:
    with pytest.raises(UserError, match="absolute"):
        render_plan(
            RECIPE,
            parameters=resolve(RECIPE, {}),
            job=JobIdentity(id="j", name="n", trigger="t", attempt=1),
            machine_root="jobs/j",
        )


def test_secrets_are_named_once_and_only_by_name() -> None:
    secretive = small_recipe(("timeout: 1h30m", "timeout: 1h\n    secrets: [HF_TOKEN, HF_TOKEN]"))
    plan = render_plan(
        secretive,
        parameters=resolve(secretive, {}),
        job=JobIdentity(id="j", name="n", trigger="t", attempt=1),
        machine_root="/job",
    )
    assert plan.secrets == ("HF_TOKEN",)


@pytest.mark.parametrize(
    ("path", "kind", "step"),
    [
        ("output/demo_000000250.safetensors", OutputKind.CHECKPOINT, 250),
        ("output/demo.safetensors", OutputKind.CHECKPOINT, None),
        ("output/samples/1731__000000100_3.png", OutputKind.SAMPLE, 100),
        ("output/deeper/demo.safetensors", None, None),
        ("demo.safetensors", None, None),
    ],
)
def test_a_file_is_known_by_the_declared_outputs(path: str, kind: OutputKind | None, step: int | None) -> None:
    outputs = find("tiny-lora@1").recipe.outputs
    found = output_of(path, outputs)
    assert (found.kind if found else None) == kind
    assert step_of(path, outputs) == step


def test_two_stars_cross_folders() -> None:
    outputs = small_recipe(("output/*.safetensors", "output/**/*.safetensors")).outputs
    assert output_of("output/a/b/c_7.safetensors", outputs)
    assert step_of("output/c_7.safetensors", outputs) == 7
    assert output_of("other/a.safetensors", outputs) is None
