"""Levers of parameters: declared once, of a type that fits, and the parameter behind each path of a config."""

from __future__ import annotations

from typing import Any

import pytest

from stationmaster.analysis.levers import Lever
from stationmaster.recipes.config_paths import Key, is_same_path, parameter_behind, parameter_leaves, read_path
from stationmaster.recipes.parameter_levers import parameter_with
from stationmaster.recipes.reading import check_recipe
from stationmaster.recipes.registry import find, list_recipes
from tests.support.jobs.recipe_texts import small, small_recipe

SHIPPED = [stored.recipe for stored in list_recipes().recipes]
STEPS = "{type: int, default: 10, min: 1, max: 100, help: How many.}"


def problems_of(*changes: tuple[str, str]) -> list[tuple[int | None, str, str]]:
    recipe, problems = check_recipe(small(*changes), file="recipe.yaml")
    assert recipe is not None
    return [(problem.line, problem.field, problem.message) for problem in problems]


def test_two_parameters_cannot_be_the_same_lever() -> None:
    twice = ((STEPS, STEPS.replace("help", "lever: steps, help")), ("min: 0, help", "min: 0, lever: steps, help"))
    assert problems_of(*twice) == [(7, "parameters.rate.lever", "the parameter steps has the lever steps already")]


@pytest.mark.parametrize(
    ("type_and_more", "lever", "needed"),
    [
        ("type: int, default: 1", "ema", "a bool"),
        ("type: float, default: 1.0", "gradient_checkpointing", "a bool"),
        ("type: str, default: x", "quantize", "a bool"),
        ("type: bool, default: true", "batch_size", "an int, a float or a choice of numbers"),
        ("type: str, default: x", "workers", "an int, a float or a choice of numbers"),
        ("type: choice, choices: [small, large]", "resolution", "an int, a float or a choice of numbers"),
        ("type: int, default: 1", "model", "a str or a choice"),
        ("type: bool, default: true", "dtype", "a str or a choice"),
    ],
)
def test_a_lever_of_another_type_is_a_problem(type_and_more: str, lever: str, needed: str) -> None:
    wrong = f"{{{type_and_more}, lever: {lever}, help: Wrong.}}"
    type_name = type_and_more.split(",")[0].removeprefix("type: ")
    message = f"the lever {lever} needs {needed}, not a parameter of type {type_name}"
    extra = f"{STEPS}\n  wrong: {wrong}"
    assert problems_of((STEPS, extra)) == [(7, "parameters.wrong.lever", message)]


@pytest.mark.parametrize(
    ("type_and_more", "lever"),
    [
        ("type: bool, default: true", "packing"),
        ("type: int, default: 2", "machine.shm_gb"),
        ('type: choice, choices: ["512", "768"]', "resolution"),
        ("type: choice, choices: [fp16, bf16]", "dtype"),
        ("type: str, default: x", "model"),
    ],
)
def test_a_lever_that_fits_is_no_problem(type_and_more: str, lever: str) -> None:
    assert problems_of((STEPS, f"{STEPS}\n  right: {{{type_and_more}, lever: {lever}, help: Right.}}")) == []


def test_an_unknown_lever_is_refused_with_those_that_exist() -> None:
    recipe, problems = check_recipe(small((STEPS, STEPS.replace("help", "lever: stepz, help"))), file="recipe.yaml")
    assert recipe is None
    assert [problem.line for problem in problems] == [6]
    assert "'batch_size'" in str(problems[0].fix)


@pytest.mark.parametrize("recipe", SHIPPED, ids=lambda recipe: recipe.reference)
def test_every_parameter_that_is_a_value_of_a_config_is_found_by_its_path(recipe: Any) -> None:
    for config in recipe.configs:
        for place, name in parameter_leaves(config):
            indexed = ".".join(key.name if key.index is None else f"{key.name}[{key.index}]" for key in place)
            plain = ".".join(key.name for key in place)
            assert {parameter_behind(recipe, path) for path in (indexed, plain)} == {name}, indexed


def test_the_shipped_configs_have_their_parameters_as_values() -> None:
    """The walk finds what a person counts in the files."""
    counted = {
        recipe.reference: len({name for config in recipe.configs for _, name in parameter_leaves(config)})
        for recipe in SHIPPED
    }
    assert counted == {
        "flux-kontext-lora@1": 13,
        "flux-kontext-lora@2": 13,
        "flux-lora@1": 14,
        "flux-lora@2": 14,
        "llm-lora@1": 0,
        "llm-lora@2": 0,
        "sdxl-lora@1": 9,
        "sdxl-lora@2": 9,
        "tiny-lora@1": 0,
    }


@pytest.mark.parametrize(
    ("recipe", "path", "name"),
    [
        ("flux-lora", "config.process[0].train.batch_size", "batch_size"),
        ("flux-lora", "train.batch_size", "batch_size"),
        ("flux-lora", "config.process[*].train.lr", "learning_rate"),
        ("flux-lora", "config.process[1].train.lr", None),
        ("flux-lora", "config.process[0].network.dropout", "lora_dropout"),
        ("flux-lora", "config.process[0].train.ema_config.use_ema", "ema"),
        ("flux-lora", "config.process[0].datasets[0].resolution", None),
        ("flux-lora", "config.process[0].model.quantize", None),
        ("flux-lora", "config.name", None),
        ("flux-kontext-lora", "config.process[0].save.save_every", "save_every"),
        ("sdxl-lora", "learning_rate", "learning_rate"),
        ("sdxl-lora", "any_section.learning_rate", "learning_rate"),
        ("sdxl-lora", "sample_every_n_steps", "sample_every"),
        ("sdxl-lora", "save_every_n_steps", None),
        ("sdxl-lora", "train_batch_size", None),
        ("sdxl-lora@1", "resolution", "resolution"),
        ("tiny-lora", "parameters.batch_size", "batch_size"),
        ("tiny-lora", "parameters.nothing", None),
        ("tiny-lora", "train.batch_size", None),
        ("tiny-lora", "machine.shm_gb", None),
        ("flux-lora", "", None),
        ("flux-lora", "train..lr", None),
    ],
)
def test_the_parameter_behind_a_path(recipe: str, path: str, name: str | None) -> None:
    assert parameter_behind(find(recipe).recipe, path) == name


def test_what_a_config_makes_of_a_parameter_is_found_by_its_lever() -> None:
    assert parameter_with(find("flux-lora").recipe, Lever.RESOLUTION) == "largest_resolution"
    assert parameter_with(find("sdxl-lora").recipe, Lever.SAVE_EVERY) == "save_every"
    assert parameter_with(find("llm-lora").recipe, Lever.MODEL) == "base_model"
    assert parameter_with(small_recipe(), Lever.STEPS) is None


def test_paths_are_read_with_and_without_places_in_lists() -> None:
    assert read_path("a[0].b[*].c") == (Key("a", 0), Key("b"), Key("c"))
    assert read_path("a[x].b") == ()
    assert is_same_path("config.process[0].datasets[0].resolution", "datasets[].resolution")
    assert not is_same_path("datasets[0].resolution", "datasets[1].resolution")
    assert not is_same_path("", "")
