"""Containers, launchers, samples, saves, health, cleanup and gates: each is read strictly and comes out as data."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stationmaster.errors import RecipeInvalid
from stationmaster.recipes.parameters import resolve
from stationmaster.recipes.plan import JobIdentity, Plan, render_plan
from stationmaster.recipes.reading import check_recipe
from stationmaster.recipes.registry import load
from stationmaster.recipes.schema import Recipe
from tests.support.jobs.recipe_texts import small, small_recipe
from trackside.root import Root
from trackside.steps.containers import run_command
from trackside.steps.plan import parse_plan

PLAIN = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
EVERYTHING = load(Path(__file__).parents[2] / "fixtures" / "training-tools" / "everything").recipe


def plan_of(recipe: Recipe, *, name: str = "demo", trigger: str = "sks", **given_values: object) -> Plan:
    return render_plan(
        recipe,
        parameters=resolve(recipe, given_values),
        job=JobIdentity(id="j1", name=name, trigger=trigger, attempt=1),
        machine_root="/opt/jobs/j1",
    )


def test_the_example_of_everything_leaves_no_field_out() -> None:
    assert EVERYTHING.resume is not None
    assert EVERYTHING.samples is not None
    parts = (EVERYTHING, EVERYTHING.stop, EVERYTHING.needs, EVERYTHING.resume, EVERYTHING.samples)
    unused = {name for part in parts for name in type(part).model_fields if name not in part.model_fields_set}
    assert not unused


def test_everything_together_is_one_plan_in_the_order_in_which_it_runs() -> None:
    plan = plan_of(EVERYTHING)
    assert [(step.name, step.contained, step.optional) for step in plan.steps] == [
        ("fetch", False, False),
        ("image", False, False),
        ("health", True, False),
        ("train", True, False),
        ("samples", True, True),
    ]
    assert [(step.name, step.contained, step.optional) for step in plan.cleanup] == [
        ("tidy", True, True),
        ("script", False, True),
    ]
    assert plan.steps[-1].unless == "output/*.png"
    assert plan.secrets == ("WANDB_API_KEY", "HF_TOKEN")
    assert [output.pattern for output in plan.outputs] == [
        *("output/*.safetensors", "logs/*.log", "output/*.png", "output/*.pt")
    ]
    assert plan.health is not None
    assert (plan.health.every_seconds, plan.health.step.timeout_seconds) == (600.0, 60.0)
    assert plan.container is not None
    assert (plan.container.memory_bytes, plan.container.gpus) == (2 * 1024**3, True)


def test_trackside_reads_every_part_of_the_plan_that_home_writes() -> None:
    read = parse_plan(plan_of(EVERYTHING).as_json())
    assert read.container is not None
    assert read.container.mounts == (("/data/m", "/data", True),)
    assert read.health is not None
    assert read.health.every_seconds == 600.0
    assert read.save is not None
    assert (read.save.touch, read.save.signal, read.save.timeout_seconds) == ("work/demo.save", None, 120.0)
    assert read.sample is not None
    assert (read.sample.argv, read.sample.proof, read.sample.timeout_seconds) == (
        ("ask", "demo"),
        "output/*.png",
        240.0,
    )
    (training,) = [step for step in read.steps if step.training]
    assert training.again is not None
    assert training.again.pattern == "output/demo/last"
    assert training.again.argv == ("--again", training.again.folder, training.again.path)
    assert [step.name for step in read.cleanup] == ["tidy", "script"]


@given(name=PLAIN, trigger=PLAIN, note=PLAIN)
@example(name="'; rm -rf / #", trigger="$(touch x)\n; exit 3", note="${HF_TOKEN} ../{{ 7 * 7 }}")
@example(name="--privileged", trigger="-v /:/host", note="--env=HF_TOKEN=x")
@example(name="../../etc", trigger='"', note="a:b,c")
def test_values_come_out_of_every_field_as_data(name: str, trigger: str, note: str) -> None:
    plan = plan_of(EVERYTHING, name=name, trigger=trigger, note=note)
    steps = {step.name: step for step in (*plan.steps, *plan.cleanup)}
    assert steps["fetch"].argv == ("fetch", name)
    assert steps["health"].argv == ("check", name)
    assert steps["tidy"].argv == ("rm", name)
    assert steps["script"].argv == ("/bin/sh", "-euc", 'rm -f "${1}"', "sh", trigger)
    assert (steps["samples"].argv, steps["samples"].env) == (("draw", trigger), {"PROMPT": name})
    assert f"--log={name}" in steps["train"].argv
    assert plan.save is not None
    assert plan.save.touch is not None
    assert ".." not in plan.save.touch.split("/")
    read = parse_plan(plan.as_json())
    assert read.container is not None
    command = run_command(read.container, read.steps[-1], root=Root("/opt/jobs/j1"), name="n")
    image = command.index(read.container.image)
    assert command[image + 1 :] == [trigger]
    assert all(word.startswith("--") for word in command[2:image])
    assert [word for word in command if word.startswith("--env=")] == [f"--env=PROMPT={name}", "--env=HF_TOKEN"]


def test_a_container_is_told_which_gpus_are_its_job_s() -> None:
    read = parse_plan(plan_of(EVERYTHING).as_json())
    assert read.container is not None
    container = read.container._replace(gpus=True)
    visible = {"CUDA_VISIBLE_DEVICES": "GPU-5f2b", "HOME": "/root"}
    command = run_command(container, read.steps[0], root=Root("/opt/jobs/j1"), name="n", environment=visible)
    assert "--env=CUDA_VISIBLE_DEVICES=GPU-5f2b" in command
    assert "--env=HOME=/root" not in command


@pytest.mark.parametrize(
    ("launcher", "gpus", "wrapped"),
    [
        ("torchrun", 2, ("-m", "torch.distributed.run", "--standalone", "--nnodes=1", "--nproc_per_node=2")),
        ("torchrun", 0, ("-m", "torch.distributed.run", "--standalone", "--nnodes=1", "--nproc_per_node=1")),
        ("accelerate", 1, ("-m", "accelerate.commands.launch", "--num_processes=1", "--num_machines=1")),
        ("accelerate", 4, ("-m", "accelerate.commands.launch", "--num_processes=4", "--num_machines=1", "--multi_gpu")),
    ],
)
def test_a_launcher_stands_between_python_and_the_script(launcher: str, gpus: int, wrapped: tuple[str, ...]) -> None:
    recipe = small_recipe(("steps:\n  - name", f"launcher: {launcher}\nneeds: {{gpus: {gpus}}}\nsteps:\n  - name"))
    assert plan_of(recipe).steps[0].argv == ("trainer", *wrapped, "demo", "--note=")


def test_a_health_check_that_is_not_to_be_repeated_is_a_step_alone() -> None:
    plan = plan_of(small_recipe(("steps:\n  - name", "health: {argv: [check]}\nsteps:\n  - name")))
    assert (plan.steps[0].name, plan.health) == ("health", None)


@pytest.mark.parametrize(
    ("field", "says"),
    [
        ("runtime: docker", "`runtime: docker` needs a `container`"),
        ("container: {image: x}", "`container` needs `runtime: docker`"),
        ("runtime: chroot", "'host', 'docker' or 'podman'"),
        ("runtime: podman\ncontainer: {image: --privileged}", "pattern"),
        ("runtime: podman\ncontainer: {image: x, memory_gib: 0}", "greater than 0"),
        ("launcher_argv: [x]", "`launcher_argv` needs a `launcher`"),
        ("nodes: 2", "more than one node needs a `launcher`"),
        ("launcher: mpirun", "'torchrun' or 'accelerate'"),
        ("launcher: torchrun\nstop: {save: {signal: USR1, proof: x}}", "use `touch` or `argv`"),
        ("stop: {save: {proof: x}}", "one of `signal`, `touch` and `argv`"),
        ("stop: {save: {signal: USR1, touch: y, proof: x}}", "one of `signal`, `touch` and `argv`"),
        ("stop: {save: {signal: KILL, proof: x}}", "'USR2'"),
        ("stop: {save: {touch: '{{ job.nam }}', proof: x}}", "unknown name `job.nam`"),
        ("stop: {save: {touch: a, proof: '{{ job.nam }}'}}", "unknown name `job.nam`"),
        ("stop: {save: {touch: /etc/x, proof: x}}", "inside the job's folder"),
        ("samples: {pattern: ../x}", "inside the job's folder"),
        ("samples: {pattern: x, argv: ['{{ job.nam }}']}", "unknown name `job.nam`"),
        ("samples: {pattern: x, env: {A: '{{ job.nam }}'}}", "unknown name `job.nam`"),
        ("cleanup: [{name: a, argv: ['{{ job.nam }}']}]", "unknown name `job.nam`"),
        ("cleanup: [{name: train, argv: [a]}]", "two steps have the same name"),
        ("cleanup: [{name: a, argv: [a], secrets: [S]}]", "cannot train and gets no secrets"),
        ("bootstrap: [{name: image, argv: [a]}]", "the step name image is reserved"),
        ("health: {argv: [a], every: 10ms}", "greater than or equal to 1"),
        ("gated: [{repository: '{{ job.nam }}'}]", "unknown name `job.nam`"),
        ("launcher: torchrun\nlauncher_argv: ['{{ job.nam }}']", "unknown name `job.nam`"),
        ("runtime: podman\ncontainer: {image: x, mounts: [{source: '{{ job.nam }}', target: /x}]}", "unknown name"),
        ("runtime: podman\ncontainer: {image: x, mounts: [{source: data, target: /x}]}", "cannot be mounted"),
        ("hooks: ../hooks.py", "inside the job's folder"),
        ("needs: {cuda: new}", "valid number"),
    ],
)
def test_a_mistake_in_a_new_field_is_named(field: str, says: str) -> None:
    _, problems = check_recipe(small(("steps:\n  - name", f"{field}\nsteps:\n  - name")), file="recipe.yaml")
    assert len(problems) == 1
    assert says in problems[0].message


@pytest.mark.parametrize("note", [":/etc:rw", ",b", "/../etc", "\nb"])
def test_a_mount_that_could_mean_something_else_is_refused_for_the_job(note: str) -> None:
    mounts = 'runtime: podman\ncontainer: {image: x, mounts: [{source: "/x{{ parameters.note }}", target: /x}]}\n'
    recipe = small_recipe(("steps:\n  - name", f"{mounts}steps:\n  - name"))
    assert plan_of(recipe, note="/models").container is not None
    with pytest.raises(RecipeInvalid, match="cannot be mounted"):
        plan_of(recipe, note=note)
