"""Compares the JSON that a command printed with the document that docs/reference/json.md describes it by."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from scripts.json_page import LIST, PRINTED, Printed


def assert_documented(title: str, answer: Any) -> None:
    """`title` is a line of json.md, such as `train --dry-run`; `answer` the JSON of one run, or one line of it."""
    printed = next(each for each in PRINTED if each.title == title)
    assert list(undocumented(printed, answer)) == [], f"{title} prints what docs/reference/json.md does not describe"


def undocumented(printed: Printed, answer: Any) -> Iterator[str]:
    """The path of every value that the document has no field for, or one of another type."""
    schema = _schema(printed)
    return _strange(answer, schema, schema.get("$defs", {}), "")


@cache
def _schema(printed: Printed) -> dict[str, Any]:
    schema = printed.document.model_json_schema(mode="serialization")
    if printed.form == LIST:
        return {"type": "array", "items": schema, "$defs": schema.pop("$defs", {})}
    return schema


def _strange(value: Any, schema: dict[str, Any], defined: dict[str, Any], path: str) -> Iterator[str]:
    if "$ref" in schema:
        yield from _strange(value, defined[schema["$ref"].rpartition("/")[2]], defined, path)
    elif choices := schema.get("anyOf") or schema.get("oneOf"):
        found = [list(_strange(value, each, defined, path)) for each in choices]
        yield from min(found, key=len)
    elif not _has_type(value, schema):
        yield f"{path}: {value!r} is not {schema.get('type')}"
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _strange(item, schema.get("items", {}), defined, f"{path}[{number}]")
    elif isinstance(value, dict):
        yield from _strange_fields(value, schema, defined, path)


def _strange_fields(value: dict[str, Any], schema: dict[str, Any], defined: dict[str, Any], path: str) -> Iterator[str]:
    fields, others = schema.get("properties", {}), schema.get("additionalProperties", "properties" not in schema)
    for name, inner in value.items():
        if name in fields:
            yield from _strange(inner, fields[name], defined, f"{path}.{name}")
        elif isinstance(others, dict):
            yield from _strange(inner, others, defined, f"{path}.{name}")
        elif not others:
            yield f"{path}.{name}"


_TYPES: dict[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "null": (type(None),),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}


def _has_type(value: Any, schema: dict[str, Any]) -> bool:
    wanted = schema.get("type")
    if not isinstance(wanted, str):
        return True
    is_bool = isinstance(value, bool)
    return isinstance(value, _TYPES[wanted]) and (wanted == "boolean") == is_bool
