"""Reads a recipe file: the recipe, or every problem in it with its line and fix."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from stationmaster.documents import Document, Unreadable, read_document
from stationmaster.errors import UserError
from stationmaster.near_names import did_you_mean
from stationmaster.recipes import schema
from stationmaster.recipes.configs import is_conditional
from stationmaster.recipes.fields import Part
from stationmaster.recipes.parameter_levers import wrong_levers
from stationmaster.recipes.parameters import check_value, sample_value
from stationmaster.recipes.plan import JobIdentity, again_names, known_names, memory_names, render_plan, time_names
from stationmaster.recipes.problems import Problem, invalid
from stationmaster.recipes.schema import Argument, Recipe, RecipeStep, SampleRequest, SaveRequest, When
from stationmaster.recipes.shell import check_script
from stationmaster.recipes.templating import TemplateFault, check_expression, check_template

Location = tuple[str | int, ...]

_AGAIN_ARGV: Location = ("resume", "again", "argv")


def read_recipe(text: str, *, file: str) -> Recipe:
    """The recipe in `text`; raises RecipeInvalid with file, line, field and fix."""
    recipe, problems = check_recipe(text, file=file)
    if recipe is None or problems:
        raise invalid(problems)
    return recipe


def check_recipe(text: str, *, file: str) -> tuple[Recipe | None, list[Problem]]:
    """The recipe, if it can be read, and everything that is wrong with it."""
    recipe, problems = _check(text, file)
    return recipe, list(problems)


@lru_cache(maxsize=100)  # a check renders the plan several times, and every job asks for the same few recipes
def _check(text: str, file: str) -> tuple[Recipe | None, Sequence[Problem]]:
    try:
        document = read_document(text, is_json=file.endswith(".json"))
        encoded = json.dumps(document.data)
    except Unreadable as error:
        return None, [Problem(file=file, line=error.line, field="", message=str(error), fix=error.fix)]
    try:
        recipe = Recipe.model_validate_json(encoded)
    except ValidationError as error:
        return None, [_schema_problem(each, document, file) for each in _errors(error)]
    return recipe, _meaning_problems(recipe, document, file)


def _errors(error: ValidationError) -> list[ErrorDetails]:
    """What pydantic found, without lists that are too short only because their items are wrong."""
    found = error.errors(include_url=False)
    places = [each["loc"] for each in found]
    return [
        each
        for each in found
        if each["type"] != "too_short"
        or not any(len(place) > len(each["loc"]) and place[: len(each["loc"])] == each["loc"] for place in places)
    ]


def _schema_problem(error: ErrorDetails, document: Document, file: str) -> Problem:
    location = tuple(part for part in error["loc"] if not _is_union_tag(part))
    message = error["msg"].removeprefix("Value error, ")
    return Problem(
        file=file,
        line=document.line_of(location),
        field=document.name_of(location),
        message=message[:1].lower() + message[1:],
        fix=_schema_fix(error, location),
    )


def _is_union_tag(part: str | int) -> bool:
    # pydantic puts the name of the chosen member of a union between the names of fields
    return part in ("argument", "arguments", "function-after[_regular_expression(), str]")


def _schema_fix(error: ErrorDetails, location: Location) -> str | None:
    name = location[-1] if location else ""
    match error["type"]:
        case "missing":
            return f"add `{name}:`"
        case "extra_forbidden":
            return did_you_mean(str(name), _fields_at(location[:-1])) or f"remove `{name}`"
        case "string_type":
            return f"write it as text: {json.dumps(str(error['input']))}"
        case "log_pattern":
            return error.get("ctx", {}).get("fix")
        case "literal_error" | "enum":
            return f"write {error.get('ctx', {}).get('expected', 'an allowed value')}"
        case "less_than_equal":
            return f"write {error['ctx']['le']} or less"
        case "greater_than_equal":
            return f"write {error['ctx']['ge']} or more"
        case _:
            return None


def _fields_at(location: Location) -> list[str]:
    """The names that the schema knows at a place; those of every part of the schema where that is not clear."""
    if not location:
        return [field.alias or name for name, field in Recipe.model_fields.items()]
    parts = (part for part in vars(schema).values() if isinstance(part, type) and issubclass(part, Part))
    return sorted({name for part in parts for name in part.model_fields})


def _meaning_problems(recipe: Recipe, document: Document, file: str) -> list[Problem]:
    problems = [
        Problem(file=file, line=document.line_of(location), field=document.name_of(location), message=message, fix=None)
        for location, message in (*_wrong_defaults(recipe), *_wrong_levers(recipe), *_wrong_templates(recipe))
    ]
    return problems or _render_problems(recipe, file)


def _wrong_defaults(recipe: Recipe) -> Iterator[tuple[Location, str]]:
    for name, parameter in recipe.parameters.items():
        if parameter.default is None:
            continue
        try:
            check_value(parameter, parameter.default)
        except ValueError as error:
            yield ("parameters", name, "default"), f"{parameter.default!r} is not {error}"


def _wrong_levers(recipe: Recipe) -> Iterator[tuple[Location, str]]:
    for name, message in wrong_levers(recipe):
        yield ("parameters", name, "lever"), message


def _wrong_templates(recipe: Recipe) -> Iterator[tuple[Location, str]]:
    names, again = known_names(recipe), again_names(recipe)
    of_models = {"time": time_names(recipe), "memory": memory_names(recipe)}
    for location, text in _templates(recipe):
        try:
            check_template(text, again if location[:3] == _AGAIN_ARGV else names)
        except TemplateFault as fault:
            yield location, str(fault)
    for place, step in _steps(recipe):
        try:
            if step.shell is not None:
                check_script(step.shell, names)
        except TemplateFault as fault:
            yield (*place, "shell"), str(fault)
    for location, text in _expressions(recipe):
        try:
            check_expression(text, of_models.get(str(location[0]), names))
        except TemplateFault as fault:
            yield location, str(fault)


def _templates(recipe: Recipe) -> Iterator[tuple[Location, str]]:
    for location, argument in _arguments(recipe):
        if isinstance(argument, str):
            yield location, argument
        else:
            yield from (((*location, "argv", index), text) for index, text in enumerate(argument.argv))
    for place, step in _steps(recipe):
        yield from (((*place, "env", name), text) for name, text in step.env.items())
        yield from (((*place, "expect", index), text) for index, text in enumerate(step.expect))
    for location, value in _config_values(recipe):
        if isinstance(value, str):
            yield location, value
    yield from _single_templates(recipe)


def _single_templates(recipe: Recipe) -> Iterator[tuple[Location, str]]:
    """Those outside commands and configs."""
    if recipe.samples:
        yield from ((("samples", "env", name), text) for name, text in recipe.samples.env.items())
    if save := recipe.stop.save:
        yield ("stop", "save", "proof"), save.proof
    if recipe.resume and recipe.resume.again:
        yield ("resume", "again", "pattern"), recipe.resume.again.pattern
    for place, request in _requests(recipe):
        if request.touch is not None:
            yield (*place, "touch"), request.touch
    for number, mount in enumerate(recipe.container.mounts if recipe.container else ()):
        yield ("container", "mounts", number, "source"), mount.source
        yield ("container", "mounts", number, "target"), mount.target
    yield from ((("gated", number, "repository"), each.repository) for number, each in enumerate(recipe.gated))


def _expressions(recipe: Recipe) -> Iterator[tuple[Location, str]]:
    for location, argument in _arguments(recipe):
        if isinstance(argument, When):
            yield (*location, "when"), argument.when
    for location, value in _config_values(recipe):
        if is_conditional(value):
            yield (*location, "when"), str(value["when"])
    yield ("time", "steps"), recipe.time.steps
    if isinstance(recipe.time.seconds_per_step, str):
        yield ("time", "seconds_per_step"), recipe.time.seconds_per_step
    for name in ("base_gib", "per_item_gib", "batch", "least_gib") if recipe.memory else ():
        if isinstance(expression := getattr(recipe.memory, name), str):
            yield ("memory", name), expression


def _arguments(recipe: Recipe) -> Iterator[tuple[Location, Argument]]:
    for place, step in _steps(recipe):
        yield from (((*place, "argv", index), argument) for index, argument in enumerate(step.argv))
    lists: tuple[tuple[Location, tuple[Argument, ...]], ...] = (
        (("health", "argv"), recipe.health.argv if recipe.health else ()),
        (("samples", "argv"), recipe.samples.argv if recipe.samples else ()),
        (("resume", "argv"), recipe.resume.argv if recipe.resume else ()),
        (_AGAIN_ARGV, recipe.resume.again.argv if recipe.resume and recipe.resume.again else ()),
        *(((*place, "argv"), request.argv) for place, request in _requests(recipe)),
        (("launcher_argv",), recipe.launcher_argv),
    )
    for location, arguments in lists:
        yield from (((*location, index), argument) for index, argument in enumerate(arguments))


def _requests(recipe: Recipe) -> Iterator[tuple[Location, SaveRequest | SampleRequest]]:
    if recipe.stop.save is not None:
        yield ("stop", "save"), recipe.stop.save
    if recipe.samples is not None and recipe.samples.now is not None:
        yield ("samples", "now"), recipe.samples.now


def _steps(recipe: Recipe) -> Iterator[tuple[Location, RecipeStep]]:
    yield from ((("bootstrap", number), step) for number, step in enumerate(recipe.bootstrap))
    yield from ((("steps", number), step) for number, step in enumerate(recipe.steps))
    yield from ((("cleanup", number), step) for number, step in enumerate(recipe.cleanup))


def _config_values(recipe: Recipe) -> Iterator[tuple[Location, Any]]:
    for number, config in enumerate(recipe.configs):
        yield from _inner_values(("configs", number, "data"), config.data)


def _inner_values(location: Location, value: Any) -> Iterator[tuple[Location, Any]]:
    """Everything in a config's data, with its place; a condition is not a value."""
    yield location, value
    if is_conditional(value):
        yield from _inner_values((*location, "value"), value["value"])
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _inner_values((*location, key), inner)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _inner_values((*location, index), inner)


def _render_problems(recipe: Recipe, file: str) -> list[Problem]:
    """Problems that appear only when the plan is filled in, found here with sample values before any job."""
    parameters: dict[str, Any] = {name: sample_value(each) for name, each in recipe.parameters.items()}
    job = JobIdentity(id="sample", name="sample", trigger="sample", attempt=1)
    for checkpoint in (None, "resume/sample.safetensors") if recipe.resume else (None,):
        try:
            render_plan(recipe, parameters=parameters, job=job, machine_root="/job", resume_from=checkpoint)
        except UserError as error:
            return [Problem(file=file, line=None, field="", message=str(error), fix=error.hint)]
    return []
