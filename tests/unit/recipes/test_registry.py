"""Recipes are found by name and version, in the given folders first and among the built-in ones last."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stationmaster.documents import read_document
from stationmaster.errors import NotFound, RecipeInvalid
from stationmaster.recipes.places import BUILTIN
from stationmaster.recipes.registry import find, lint, list_recipes, load
from tests.support.jobs.recipe_texts import SMALL, small, write_recipe


def test_a_built_in_recipe_is_found_by_name_and_by_version() -> None:
    assert find("tiny-lora@1").recipe.reference == "tiny-lora@1"
    assert find("tiny-lora").folder == BUILTIN / "tiny-lora"


def test_every_built_in_recipe_is_without_problems() -> None:
    listing = list_recipes()
    assert listing.problems == ()
    assert "tiny-lora@1" in [stored.recipe.reference for stored in listing.recipes]


@pytest.mark.parametrize("file", ["recipe.yaml", "tool.yaml", "recipe.json", "tool.json"])
def test_each_accepted_file_name_is_read(tmp_path: Path, file: str) -> None:
    text = SMALL if file.endswith(".yaml") else json.dumps(read_document(SMALL, is_json=False).data)
    write_recipe(tmp_path, "small", text, file=file)
    assert find("small@1", folders=[tmp_path]).file.name == file


def test_without_a_version_the_newest_is_meant(tmp_path: Path) -> None:
    write_recipe(tmp_path, "small", small(("version: 1", "version: 2")))
    write_recipe(tmp_path, "small@1", SMALL)
    assert find("small", folders=[tmp_path]).recipe.version == 2
    assert find("small@1", folders=[tmp_path]).recipe.version == 1


def test_the_folder_given_first_wins(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_recipe(tmp_path / name, "small", SMALL)
    folders = [tmp_path / "a", tmp_path / "b"]
    assert find("small", folders=folders).folder == tmp_path / "a" / "small"
    assert [stored.folder for stored in list_recipes(folders=folders).recipes if stored.recipe.name == "small"] == [
        tmp_path / "a" / "small"
    ]


@pytest.mark.parametrize(
    ("reference", "hint"),
    [
        ("tiny-lora@9", "use tiny-lora@1"),
        ("tinylora@1", "did you mean `tiny-lora@1`"),
        ("lora", "tiny-lora@1"),
        ("../tiny-lora", "did you mean `tiny-lora@1`"),
        ("tiny-lora@0", "did you mean `tiny-lora@1`"),
        ("", "write name@version"),
    ],
)
def test_an_unknown_recipe_is_answered_with_the_nearest(reference: str, hint: str) -> None:
    with pytest.raises(NotFound) as caught:
        find(reference)
    assert hint in str(caught.value.hint)


def test_a_broken_recipe_hides_no_other(tmp_path: Path) -> None:
    write_recipe(tmp_path, "broken", "name: broken")
    write_recipe(tmp_path, "small", SMALL)
    listing = list_recipes(folders=[tmp_path])
    assert "small@1" in [stored.recipe.reference for stored in listing.recipes]
    assert {problem.file for problem in listing.problems} == {str(tmp_path / "broken" / "recipe.yaml")}
    assert find("small", folders=[tmp_path]).recipe.name == "small"
    with pytest.raises(RecipeInvalid):
        find("broken", folders=[tmp_path])


def test_a_registry_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="gone"):
        list_recipes(folders=[tmp_path / "gone"])


def test_lint_names_missing_files_and_a_wrong_folder(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    file = write_recipe(tmp_path, "other", small(("parameters:", "files: [train.py, link]\nparameters:")))
    (file.parent / "link").symlink_to(tmp_path / "secret")
    assert [(problem.field, problem.fix) for problem in lint(file)] == [
        ("name", "rename the folder to small"),
        ("files[0]", "add the file, or remove it from the list"),
        ("files[1]", "add the file, or remove it from the list"),
    ]
    with pytest.raises(RecipeInvalid):
        load(file.parent)


def test_a_recipe_may_use_the_files_of_another_one_beside_it(tmp_path: Path) -> None:
    lender = write_recipe(tmp_path, "small", small(("parameters:", "files: [train.py]\nparameters:")))
    (lender.parent / "train.py").write_text("")
    borrows = (("name: small", "name: other"), ("parameters:", "files: [own.py]\nfiles_of: small@1\nparameters:"))
    file = write_recipe(tmp_path, "other", small(*borrows))
    (file.parent / "own.py").write_text("")
    own, borrowed = load(file).shipped_files()
    assert own == ("own.py", file.parent / "own.py")
    assert borrowed == ("train.py", lender.parent / "train.py")
    lender.write_text(lender.read_text().replace("version: 1", "version: 2"))
    (problem,) = lint(file)
    assert "no valid recipe small@1 beside" in problem.message
    lender.parent.rename(tmp_path / "small@1")
    (tmp_path / "small@1" / "recipe.yaml").write_text(small(("parameters:", "files: [train.py]\nparameters:")))
    assert not lint(file), "an older version that was put aside"
    (file.parent / "train.py").write_text("")
    file.write_text(file.read_text().replace("files: [own.py]", "files: [own.py, train.py]"))
    (problem,) = lint(file)
    assert problem.message == "small@1 also has a file train.py"


def test_shipped_files_are_those_beside_the_recipe(tmp_path: Path) -> None:
    file = write_recipe(tmp_path, "small", small(("parameters:", "files: [a/b.py]\nparameters:")))
    (file.parent / "a").mkdir()
    (file.parent / "a" / "b.py").write_text("pass")
    assert load(file).shipped_files() == (("a/b.py", file.parent / "a" / "b.py"),)
    assert lint(file.parent) == []


def test_a_file_that_is_not_text_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "recipe.yaml").write_bytes(b"\xff\xfe")
    assert "cannot be read" in lint(tmp_path / "small")[0].message


def test_nothing_to_lint_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no recipe at"):
        lint(tmp_path)


def test_a_recipe_that_is_corrected_or_loses_a_file_is_read_as_it_is_now(tmp_path: Path) -> None:
    file = write_recipe(tmp_path, "small", small(("version: 1", "version: none")))
    assert len(lint(file)) == len(lint(file)) == 1
    for version in (1, 7):
        file.write_text(small(("version: 1", f"version: {version}")))
        assert find("small", folders=[tmp_path]).recipe.version == version
    file.write_text(small(("parameters:", "files: [train.py]\nparameters:")))
    for _ in range(2):
        assert [problem.field for problem in lint(file)] == ["files[0]"]
        (file.parent / "train.py").write_text("")
        assert load(file).recipe.files == ("train.py",)
        (file.parent / "train.py").unlink()
