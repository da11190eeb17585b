"""The pieces of recipes in the authoring guide are right, and its table names every field."""

from __future__ import annotations

import re

import pytest

from stationmaster.recipes.reading import check_recipe
from stationmaster.recipes.schema import Recipe
from tests.support.jobs.recipe_texts import small
from tests.support.programs import ROOT

GUIDE = (ROOT / "docs" / "training-tools.md").read_text(encoding="utf-8")
PIECES = re.findall(r"^```yaml\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


def test_there_are_pieces_to_look_at() -> None:
    assert PIECES


@pytest.mark.parametrize("piece", PIECES)
def test_a_piece_of_a_recipe_can_be_used_in_one(piece: str) -> None:
    numbers = "".join(
        f"  {name}: {{type: int, default: 8, help: A number.}}\n" for name in ("rank", "resolution", "batch_size")
    )
    prompts = f"parameters:\n  prompts: {{type: str, default: a cat, help: One a line.}}\n{numbers}"
    own = [('resume:\n  argv: [--from, "{{ resume.checkpoint }}"]\n', "")] if piece.startswith("resume:") else []
    parameters, rest = (piece, "") if piece.startswith("parameters:") else (prompts, piece)
    text = small(("parameters:\n", parameters), *own, ("steps:\n  - name", f"{rest}steps:\n  - name"))
    recipe, problems = check_recipe(text, file="recipe.yaml")
    assert problems == []
    assert recipe is not None


def test_the_table_names_every_field() -> None:
    named = set(re.findall(r"`(\w+)`", GUIDE[GUIDE.index("## Fields") :]))
    assert {field.alias or name for name, field in Recipe.model_fields.items()} - named == set()
