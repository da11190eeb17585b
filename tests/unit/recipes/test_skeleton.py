"""A new recipe can be used as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stationmaster.errors import UserError
from stationmaster.recipes.registry import find, lint
from stationmaster.recipes.schema import json_schema
from stationmaster.recipes.skeleton import write_skeleton


def test_a_skeleton_has_no_fault_and_is_found_by_its_name(tmp_path: Path) -> None:
    file = write_skeleton(tmp_path / "recipes" / "my-tool")
    assert lint(file) == []
    assert find("my-tool@1", folders=[tmp_path / "recipes"]).file == file


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(UserError, match="exists already"):
        write_skeleton(tmp_path / "mine")
    assert list((tmp_path / "mine").iterdir()) == []


@pytest.mark.parametrize("name", ["My Tool", "-x", "ä"])
def test_a_name_that_no_recipe_can_have_is_refused_before_anything_is_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="cannot be a recipe name"):
        write_skeleton(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_the_schema_is_json_and_explains_its_fields() -> None:
    schema = json.loads(json.dumps(json_schema()))
    assert {"configs", "bootstrap", "health", "image"} <= schema["properties"].keys()
    assert schema["properties"]["configs"]["description"]
