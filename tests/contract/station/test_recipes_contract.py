"""What every face may rely on about recipes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from stationmaster.errors import NotFound, UserError
from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.station_kinds import every_station
from tests.support.trusted_settings import write_trusted


@pytest.fixture
def own_recipes(tmp_path: Path) -> Path:
    """A folder of recipes that the settings of the world that is opened next name."""
    folder = tmp_path / "recipes"
    folder.mkdir()
    write_trusted(tmp_path / "stationmaster.toml", f'recipes = ["{folder}"]\n', home=tmp_path / "home")
    return folder


def test_a_list_has_each_recipe_in_its_newest_version_unless_all_are_asked_for(untouched: LocalWorld) -> None:
    newest, every = untouched.station.recipes.listed(), untouched.station.recipes.listed(with_older=True)
    names = [recipe.name for recipe in newest.recipes]
    assert names == sorted(set(names))
    assert {recipe.name for recipe in every.recipes} == set(names)
    assert len(every.recipes) > len(newest.recipes)
    assert {recipe.reference for recipe in newest.recipes} < {recipe.reference for recipe in every.recipes}
    assert (newest.problems, every.problems) == ((), ())


def test_a_recipe_is_found_by_its_version_or_in_its_newest(untouched: LocalWorld) -> None:
    recipes = untouched.station.recipes
    older, newer = (one for one in recipes.listed(with_older=True).recipes if one.name == "flux-lora")
    assert recipes.find(older.reference) == older
    assert recipes.find("flux-lora") == newer
    assert older.version < newer.version


@pytest.mark.parametrize("reference", ["", "tiny-lora@99", "tiny-laura@1", "../tiny-lora", "tiny-lora@0"])
def test_a_recipe_that_is_not_there_is_not_found_and_the_hint_helps(untouched: LocalWorld, reference: str) -> None:
    with pytest.raises(NotFound) as caught:
        untouched.station.recipes.find(reference)
    assert "tiny-lora@1" in str(caught.value.hint)


@every_station
def test_a_recipe_of_one_s_own_begins_as_one_that_can_be_used(own_recipes: Path, world: LocalWorld) -> None:
    recipes = world.station.recipes
    file = recipes.write_skeleton(own_recipes / "portrait")
    assert file.parent == own_recipes / "portrait"
    assert recipes.lint(file) == recipes.lint(file.parent) == []
    assert recipes.find("portrait").reference == "portrait@1"
    assert "portrait@1" in [recipe.reference for recipe in recipes.listed().recipes]
    with pytest.raises(UserError, match="exists already"):
        recipes.write_skeleton(own_recipes / "portrait")


def test_a_broken_recipe_is_told_with_its_line_and_hides_no_other(own_recipes: Path, world: LocalWorld) -> None:
    recipes = world.station.recipes
    file = recipes.write_skeleton(own_recipes / "portrait")
    file.write_text(file.read_text().replace("version: 1 ", "version: one "))
    (problem,) = recipes.lint(file)
    assert (problem.file, problem.line, problem.field) == (str(file), 3, "version")
    listed = recipes.listed()
    assert listed.problems == (problem,)
    assert "tiny-lora@1" in [recipe.reference for recipe in listed.recipes]
    assert "portrait@1" not in [recipe.reference for recipe in listed.recipes]


def test_a_recipe_that_is_being_written_is_checked_as_a_text(untouched: LocalWorld) -> None:
    recipes = untouched.station.recipes
    (problem,) = recipes.lint_text("name: portrait\nversion: [1\n")
    assert (problem.file, problem.field) == ("recipe.yaml", "")
    problems = {each.field: each for each in recipes.lint_text("name: portrait\nverson: 1\n")}
    assert problems["verson"].line == 2
    assert problems["verson"].fix == "did you mean `version`?"
    assert problems["steps"].fix == "add `steps:`"


def test_a_valid_text_has_no_problems(untouched: LocalWorld, tmp_path: Path) -> None:
    text = untouched.station.recipes.write_skeleton(tmp_path / "portrait").read_text()
    assert list(untouched.station.recipes.lint_text(text)) == []


@pytest.mark.parametrize(
    "argument",
    [
        '{{ "a" * 1000000000 }}',
        '{{ "%1000000000d" % 1 }}',
        '{{ "aaaaaaaaaa"' + """ | replace("a", "aaaaaaaaaa")""" * 20 + " }}",
        "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}",
    ],
    ids=["repeated", "padded", "replaced", "nested"],
)
def test_a_text_cannot_make_the_server_work_for_long(untouched: LocalWorld, tmp_path: Path, argument: str) -> None:
    text = untouched.station.recipes.write_skeleton(tmp_path / "portrait").read_text()
    document = yaml.safe_load(text)
    document["steps"][0]["argv"] = ["python3", argument]
    (problem,) = untouched.station.recipes.lint_text(yaml.safe_dump(document))
    assert re.search("only for numbers|characters|too deeply", problem.message)


def test_where_there_is_no_recipe_there_is_nothing_to_check(untouched: LocalWorld, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        untouched.station.recipes.lint(tmp_path / "nothing")


@pytest.mark.parametrize("name", ["Portrait", "two words", "ü"])
def test_a_folder_that_cannot_be_a_recipe_s_name_is_not_written(
    untouched: LocalWorld, tmp_path: Path, name: str
) -> None:
    with pytest.raises(UserError, match="cannot be a recipe name"):
        untouched.station.recipes.write_skeleton(tmp_path / name)
    assert not (tmp_path / name).exists()


def test_a_folder_of_recipes_that_has_gone_is_told(own_recipes: Path, world: LocalWorld) -> None:
    own_recipes.rmdir()
    with pytest.raises(NotFound, match=str(own_recipes)):
        world.station.recipes.listed()
