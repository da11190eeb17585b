"""Where recipes are kept: the built-in folder and the folders that the settings name.

A registry is a folder of folders: `<registry>/<name>/recipe.yaml`, or `<name>@<version>/` beside it where several
versions are kept. `tool.yaml` and the same names ending in `.json` are read as well.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from stationmaster.documents import read_document
from stationmaster.errors import NotFound
from stationmaster.model.adopted import ADOPTED_RECIPE
from stationmaster.near_names import did_you_mean
from stationmaster.recipes.adopted import adopted_files, adopted_recipe
from stationmaster.recipes.pins import unpinned
from stationmaster.recipes.places import BUILTIN, FILE_NAMES
from stationmaster.recipes.problems import Problem, invalid
from stationmaster.recipes.reading import check_recipe
from stationmaster.recipes.schema import RECIPE_NAME, Recipe

HOOKS = frozenset({"parameters", "check"})

_REFERENCE = re.compile(rf"({RECIPE_NAME.pattern})(?:@([1-9][0-9]{{0,8}}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRecipe:
    """A recipe and the folder with its files."""

    recipe: Recipe
    folder: Path
    file: Path

    def shipped_files(self) -> tuple[tuple[str, Path], ...]:
        """What goes to the machine: the name below recipe.dir, and the file here."""
        own = tuple((name, self.folder / name) for name in self.recipe.files)
        lender = _lender(self.recipe, self.folder)
        return own if lender is None else (*own, *((name, lender.folder / name) for name in lender.recipe.files))


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """All recipes that can be used, and what is wrong with the others."""

    recipes: tuple[StoredRecipe, ...]
    problems: tuple[Problem, ...]


def find(reference: str, *, folders: Sequence[Path] = ()) -> StoredRecipe:
    """The recipe `name@version`, or the newest one of `name`; a folder given earlier wins, the built-in one is last.

    Raises NotFound with the nearest names as hint, RecipeInvalid if the recipe found is not valid.
    """
    if reference == ADOPTED_RECIPE:  # in no folder: nobody can train with it
        return StoredRecipe(recipe=adopted_recipe(), folder=adopted_files(), file=adopted_files())
    parsed = _REFERENCE.fullmatch(reference)
    if parsed is None:
        known = [stored.recipe.reference for stored in list_recipes(folders=folders).recipes]
        hint = did_you_mean(reference, known) or "write name@version, as in tiny-lora@1"
        raise NotFound(f"{reference!r} is not a recipe name", hint=hint)
    name, version = parsed[1], int(parsed[2]) if parsed[2] else None
    found = [load(file) for file in _files(folders) if file.parent.name.partition("@")[0] == name]
    fitting = [stored for stored in found if version in (None, stored.recipe.version)]
    if not fitting:
        raise NotFound(f"there is no recipe {reference}", hint=_nearest(reference, found, folders))
    return max(fitting, key=lambda stored: stored.recipe.version)  # the first of equals: the earlier folder


def list_recipes(*, folders: Sequence[Path] = ()) -> Listing:
    """Every recipe by name and version; a broken one is a problem in the list and hides no other."""
    recipes: dict[str, StoredRecipe] = {}
    problems: list[Problem] = []
    for file in _files(folders):
        recipe, found = _checked(file)
        problems += found
        if recipe is not None and not found:
            recipes.setdefault(recipe.reference, StoredRecipe(recipe=recipe, folder=file.parent, file=file))
    order = sorted(recipes.values(), key=lambda stored: (stored.recipe.name, stored.recipe.version))
    return Listing(recipes=tuple(order), problems=tuple(problems))


def newest(recipes: Sequence[StoredRecipe]) -> tuple[StoredRecipe, ...]:
    """Of each name the newest version, in the same order; older ones stay for jobs that were trained with them."""
    latest = {stored.recipe.name: stored.recipe.version for stored in sorted(recipes, key=_version)}
    return tuple(stored for stored in recipes if stored.recipe.version == latest[stored.recipe.name])


def _version(stored: StoredRecipe) -> int:
    return stored.recipe.version


def load(path: Path) -> StoredRecipe:
    """The recipe in a file, or in the folder that holds it; raises RecipeInvalid or NotFound."""
    file = _recipe_file(path)
    recipe, problems = _checked(file)
    if recipe is None or problems:
        raise invalid(problems)
    return StoredRecipe(recipe=recipe, folder=file.parent, file=file)


def lint(path: Path) -> list[Problem]:
    """All that is wrong with the recipe at `path`, with line and fix. It can be used if there are only warnings."""
    file = _recipe_file(path)
    recipe, problems = _checked(file)
    return problems if recipe is None or problems else list(_warnings(recipe, file))


def lint_text(text: str) -> list[Problem]:
    """Everything that is wrong with a recipe that has no folder yet: the files that it names are not looked for."""
    return check_recipe(text, file=FILE_NAMES[0])[1]


def _warnings(recipe: Recipe, file: Path) -> Iterator[Problem]:
    """What the recipe runs without naming its exact version."""
    document = read_document(file.read_text(encoding="utf-8"), is_json=file.suffix == ".json")
    texts = {name: (file.parent / name).read_text(encoding="utf-8", errors="replace") for name in recipe.files}
    for location, message, fix in unpinned(recipe, texts):
        line, field = document.line_of(location), document.name_of(location)
        yield Problem(file=str(file), line=line, field=field, message=message, fix=fix, is_warning=True)


def _files(folders: Sequence[Path]) -> Iterator[Path]:
    for registry in (*folders, BUILTIN):
        if not registry.is_dir():
            raise NotFound(
                f"there is no recipe folder {registry}", hint="correct or remove it in the setting `recipes`"
            )
        for folder in sorted(registry.iterdir()):
            yield from _files_in(folder)[:1]


def _files_in(folder: Path) -> list[Path]:
    return [folder / name for name in FILE_NAMES if (folder / name).is_file()]


def _recipe_file(path: Path) -> Path:
    files = [path] if path.is_file() else _files_in(path)
    if not files:
        raise NotFound(f"there is no recipe at {path}", hint="give the path of a recipe.yaml, or of its folder")
    return files[0]


def _checked(file: Path) -> tuple[Recipe | None, list[Problem]]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return None, [Problem(file=str(file), line=None, field="", message=f"cannot be read: {error}")]
    recipe, problems = check_recipe(text, file=str(file))
    return recipe, [*problems, *(() if recipe is None else _misplaced(recipe, file))]


def _misplaced(recipe: Recipe, file: Path) -> Iterator[Problem]:
    """Declared files that do not exist, and a folder whose name is not the recipe's."""
    folder = file.parent.resolve()
    if folder.name not in (recipe.name, recipe.reference):
        yield Problem(
            file=str(file),
            line=None,
            field="name",
            message=f"the recipe is called {recipe.name}, but its folder {folder.name}",
            fix=f"rename the folder to {recipe.name}",
        )
    yield from _wrong_hooks(recipe, file)
    yield from _wrong_lender(recipe, file)
    for index, name in enumerate(recipe.files):
        target = (folder / name).resolve()
        if not target.is_file() or not target.is_relative_to(folder):
            yield Problem(
                file=str(file),
                line=None,
                field=f"files[{index}]",
                message=f"there is no file {name} beside the recipe",
                fix="add the file, or remove it from the list",
            )


def _lender(recipe: Recipe, folder: Path) -> StoredRecipe | None:
    """The recipe whose files this one uses as well; None where there is none, or none is named."""
    if recipe.files_of is None:
        return None
    name = recipe.files_of.partition("@")[0]
    for beside in (folder.resolve().parent / recipe.files_of, folder.resolve().parent / name):
        for file in _files_in(beside)[:1]:
            found, problems = _checked(file)
            if found is not None and not problems and found.reference == recipe.files_of:
                return StoredRecipe(recipe=found, folder=beside, file=file)
    return None


def _wrong_lender(recipe: Recipe, file: Path) -> Iterator[Problem]:
    if recipe.files_of is None:
        return
    lender = _lender(recipe, file.parent)
    twice = [] if lender is None else sorted({*lender.recipe.files} & {*recipe.files})
    if lender is None or twice:
        yield Problem(
            file=str(file),
            line=None,
            field="files_of",
            message=f"there is no valid recipe {recipe.files_of} beside this one"
            if lender is None
            else f"{recipe.files_of} also has a file {twice[0]}",
            fix="add it, or copy its files" if lender is None else "rename one of them",
        )


def _wrong_hooks(recipe: Recipe, file: Path) -> Iterator[Problem]:
    if recipe.hooks is None:
        return
    folder = file.parent.resolve()
    hooks = (folder / recipe.hooks).resolve()
    problem, fix = None, "add the file, or remove `hooks` from the recipe"
    if not hooks.is_file() or not hooks.is_relative_to(folder):
        problem = f"there is no file {recipe.hooks} beside the recipe"
    else:
        problem, fix = _hooks_problem(hooks), "define `parameters(parameters, dataset)` or `check(parameters, dataset)`"
    if problem:
        yield Problem(file=str(file), line=None, field="hooks", message=problem, fix=fix)


def _hooks_problem(hooks: Path) -> str | None:
    """What is wrong with the file as Python, without running it."""
    try:
        tree = ast.parse(hooks.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError, OSError) as error:
        return f"{hooks.name} cannot be read as Python: {error}"
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return None if defined & HOOKS else f"{hooks.name} defines none of {', '.join(sorted(HOOKS))}"


def _nearest(reference: str, found: Sequence[StoredRecipe], folders: Sequence[Path]) -> str:
    if found:
        return "use " + ", ".join(stored.recipe.reference for stored in found)
    known = [stored.recipe.reference for stored in list_recipes(folders=folders).recipes]
    return did_you_mean(reference, known, most=3) or f"use one of: {', '.join(known)}"
