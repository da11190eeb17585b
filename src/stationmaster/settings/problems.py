"""Validation errors of settings as plain sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from stationmaster.near_names import did_you_mean

_WORDS: Mapping[str, str] = {
    "missing": "is missing",
    "model_type": "must be a table of settings",
    "model_attributes_type": "must be a table of settings",
    "dict_type": "must be a table of names and values",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "string_type": "must be text",
    "string_pattern_mismatch": "contains characters that are not allowed here",
    "path_type": "must be a path",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "is too large a number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
}
_BOUNDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "greater_than": lambda limit: f"must be above {limit['gt']:g}",
    "greater_than_equal": lambda limit: f"must be at least {limit['ge']:g}",
    "less_than": lambda limit: f"must be below {limit['lt']:g}",
    "less_than_equal": lambda limit: f"must be at most {limit['le']:g}",
    "string_too_short": lambda limit: f"must have at least {limit['min_length']} character(s)",
    "string_too_long": lambda limit: f"must have at most {limit['max_length']} characters",
    "literal_error": lambda limit: f"must be one of {str(limit['expected']).replace(chr(39), '')}",
}


def problem_in_words(error: ValidationError, *, below: str = "") -> str:
    """The first problem, after the setting's name, and how many more there are."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in (below, *first["loc"]) if part != "")
    kind, more = first["type"], error.error_count() - 1
    others = f" (and {more} more)" if more else ""
    if kind == "extra_forbidden":
        return f"{place} is not a setting{others}"
    problem = first["msg"].removeprefix("Value error, ")
    if kind in _WORDS:
        problem = _WORDS[kind]
    elif kind in _BOUNDS:
        problem = _BOUNDS[kind](first.get("ctx", {}))
    return f"{place}: {problem}{others}" if place else f"{problem}{others}"


def nearest_setting(error: ValidationError, model: type[BaseModel], *, below: str = "") -> str | None:
    """A hint with the setting of the nearest name, if the error is about an unknown setting."""
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] != "extra_forbidden":
        return None
    *sections, wrong = (str(part) for part in first["loc"])
    for section in sections:
        field = model.model_fields.get(section)
        inner = None if field is None else _section_in(field.annotation)
        if inner is not None:  # else an entry of a list or table: its own name
            model = inner
    return did_you_mean(wrong, model.model_fields, ".".join(filter(None, (below, *sections, "{}"))))


def _section_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_section_in, get_args(annotation))), None)
