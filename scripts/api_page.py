"""The reference page of the HTTP API, made from the OpenAPI document of the app itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, cast

from fastapi import FastAPI
from fastapi.routing import APIRoute

from stationmaster import errors
from stationmaster.api import problems
from stationmaster.api.app import ROUTES, Service, build_app
from stationmaster.api.gate.chain import ANSWERS
from stationmaster.control.destinations.upload_tickets import UploadTickets
from stationmaster.station.base import Station
from stationmaster.station.doorkeeper import Doorkeeper

_SUCCESSES = ("200", "201", "202", "204", "206", "303", "304", "307")
_COMMON = tuple(map(str, ANSWERS))
_INTRODUCTION = """\
# HTTP API

`stationmaster serve` and `stationmaster up` answer at `http://127.0.0.1:8080`. This page is made from the API's own
description, which `GET /api/openapi.json` returns. How to use it:
[from your own program](../how-to/from-your-own-program.md), [serve to others](../how-to/serve-to-others.md).

- **Who asks.** Send `Authorization: Bearer TOKEN`. A token has rights: `read` (see what is yours), `train` (also
  submit, stop and remove), `manage` (everything, for administrators). What another user owns does not exist for you:
  the answer is 404.
- **Errors** are [Problem](#problem) documents (`application/problem+json`) with a `hint`. Any route may answer with
  COMMON; the errors below are further ones.
- **Lists** are `{"items": […], "next": …}`. Pass `next` as `after` to get the next page; it is null on the last one.
- **Times** are ISO 8601 in UTC. Fields that end in `_usd` are dollars, in `_micros` millionths of a dollar. A measured
  number that is not finite is one of the words "NaN", "Infinity" and "-Infinity".
- **Jobs** in paths are an id, the unique beginning of one, or a name.
- **Repeating.** A `POST` that submits a job takes an `Idempotency-Key`: the same key gives the same job.
- **Live.** Routes that can stream answer `Accept: text/event-stream` with server-sent events. Send the last event's id
  as `Last-Event-ID` to continue after a lost connection. Without that header they answer a page of JSON.
- Fields are added, never renamed or removed. Ignore those that you do not know."""


def api_page(made: str) -> str:
    """The page; `made` is the line that says how it was made."""
    description = described_app().openapi()
    operations = list(_operations(description, _rights()))
    lines = [
        made,
        _INTRODUCTION.replace("COMMON", ", ".join(map(str, ANSWERS))),
        "",
        "## Routes",
        "",
        *_overview(operations),
        *(line for tag in _tags(operations) for line in _tag_section(tag, operations)),
        "",
        "## Kinds of errors",
        "",
        "`type` of a [Problem](#problem) is `urn:stationmaster:problem:` and one of these:",
        "",
        "| kind | status | meaning |",
        "|---|--:|---|",
        *_kinds_of_errors(),
        "",
        "## Documents",
        *(line for name, schema in _documents(description) for line in document_lines(name, schema)),
    ]
    return "\n".join(lines) + "\n"


@cache  # an app describes itself once, which takes seconds
def described_app() -> FastAPI:
    """The app with all its routes; nothing is asked of what it would answer from."""
    nothing = cast(Any, object())
    return build_app(
        Service(
            station=cast(Station, nothing), doorkeeper=cast(Doorkeeper, nothing), tickets=cast(UploadTickets, nothing)
        )
    )


def _rights() -> dict[tuple[str, str], str]:
    """The right that each route needs, by its method and path."""
    found = {}
    for route in (route for routes in ROUTES for route in routes.routes if isinstance(route, APIRoute)):
        asked = (getattr(each.call, "right", None) for each in route.dependant.dependencies)
        right = next((str(right) for right in asked if right is not None), "")
        found.update({(method.lower(), route.path_format): right for method in route.methods or ()})
    return found


def _operations(description: dict[str, Any], rights: dict[tuple[str, str], str]) -> Iterator[dict[str, Any]]:
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            yield {
                **operation,
                "title": f"{method.upper()} {path}",
                "tag": (operation.get("tags") or ["other"])[0],
                "right": rights.get((method, path), ""),
            }


def _tags(operations: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(operation["tag"] for operation in operations))


def _overview(operations: list[dict[str, Any]]) -> Iterator[str]:
    yield "| route | what | right |"
    yield "|---|---|---|"
    for tag in _tags(operations):
        for each in operations:
            if each["tag"] == tag:
                yield f"| [`{each['title']}`](#{each['operationId']}) | {in_cell(each['summary'])} | {_right(each)} |"


def _tag_section(tag: str, operations: list[dict[str, Any]]) -> Iterator[str]:
    yield ""
    yield f"## {tag.capitalize()}"
    for operation in operations:
        if operation["tag"] == tag:
            yield from _operation(operation)


def _operation(operation: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield f"### {operation['operationId']}"
    yield ""
    right = f" Right: {_right(operation)}." if operation["right"] else ""
    yield f"`{operation['title']}`: {operation['summary']}.{right}"
    if operation.get("description"):
        yield ""
        yield " ".join(operation["description"].split())
    if parameters := operation.get("parameters"):
        yield ""
        yield "| parameter | in | type | meaning |"
        yield "|---|---|---|---|"
        yield from (_parameter(each) for each in parameters)
    yield ""
    yield from _body_and_answers(operation)


def _body_and_answers(operation: dict[str, Any]) -> Iterator[str]:
    if "requestBody" in operation:
        yield f"- Body: {_content(operation['requestBody'])}"
    responses = operation["responses"]
    for status in (status for status in responses if status in _SUCCESSES):
        yield f"- Answers {status}: {_content(responses[status]) or 'nothing'}"
    if refused := ", ".join(status for status in responses if status not in _SUCCESSES + _COMMON):
        yield f"- Errors: {refused}"


def _right(operation: dict[str, Any]) -> str:
    if operation["tag"] == "uploads":
        return "a machine's ticket"
    return f"`{operation['right']}`" if operation["right"] else "none"


def _parameter(parameter: dict[str, Any]) -> str:
    schema = parameter.get("schema", {})
    meaning = parameter.get("description") or schema.get("description") or ""
    default = schema.get("default")
    if default is not None:
        meaning = f"{meaning} Default: `{str(default).lower() if isinstance(default, bool) else default}`."
    required = " (required)" if parameter.get("required") and parameter["in"] != "path" else ""
    return f"| `{parameter['name']}`{required} | {parameter['in']} | {_type(schema)} | {in_cell(meaning)} |"


def _content(answer: dict[str, Any]) -> str:
    """The documents of a body or an answer, one per media type."""
    found = []
    for media, content in answer.get("content", {}).items():
        kind = _type(content.get("schema", {}))
        found.append(kind if media == "application/json" else f"`{media}`{'' if kind == 'anything' else f' ({kind})'}")
    return " or ".join(dict.fromkeys(found))


def _documents(description: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    schemas = description.get("components", {}).get("schemas", {})
    return [(name, schemas[name]) for name in sorted(schemas) if not _is_ours_to_skip(name)]


def _is_ours_to_skip(name: str) -> bool:
    """Pages are described once, above; FastAPI's own documents of errors are not answered."""
    return name.startswith("Page_") or name in ("HTTPValidationError", "ValidationError")


def document_lines(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield f"### {_plain_name(name)}"
    yield ""
    if schema.get("description"):
        yield " ".join(schema["description"].split())
        yield ""
    if "properties" not in schema:
        yield f"{_type(schema)}"
        return
    is_request = schema.get("additionalProperties") is False
    required = set(schema.get("required", ())) if is_request else set()
    yield "| field | type | meaning |"
    yield "|---|---|---|"
    for field, of_field in schema["properties"].items():
        mark = " (required)" if field in required else ""
        yield f"| `{field}`{mark} | {_type(of_field)} | {in_cell(of_field.get('description', ''))} |"


def _type(schema: dict[str, Any]) -> str:
    """A JSON schema in a few words; documents are links."""
    if "$ref" in schema:
        return _reference(schema["$ref"].rpartition("/")[2])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_type(each) for each in schema[several]))
    if "allOf" in schema:
        return " and ".join(_type(each) for each in schema["allOf"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return " or ".join(f"`{each}`" for each in schema["enum"])
    return _plain_type(schema)


def _plain_type(schema: dict[str, Any]) -> str:
    match schema.get("type"):
        case "array" if "prefixItems" in schema:
            return f"list of {', '.join(_type(each) for each in schema['prefixItems'])}"
        case "array":
            return f"list of {_type(schema.get('items', {}))}"
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            return f"object of names and {_type(schema['additionalProperties'])}"
        case "object":
            return "object"
        case "string":
            return {"date-time": "time", "binary": "bytes"}.get(schema.get("format", ""), "text")
        case "integer":
            return "whole number"
        case "boolean":
            return "true or false"
        case "null":
            return "null"
        case "number":
            return "number"
        case _:
            return "anything"


def _reference(name: str) -> str:
    if name.startswith("Page_"):
        return f"page of {_reference(name.removeprefix('Page_').removesuffix('_'))}"
    plain = _plain_name(name)
    return f"[{plain}](#{plain.lower()})"


def _plain_name(name: str) -> str:
    return name.replace("_Input", "").replace("_Output", "")


def _kinds_of_errors() -> Iterator[str]:
    found = {
        kind.__name__: kind
        for module in (errors, problems)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, errors.StationmasterError)
    }
    for name, kind in sorted(found.items(), key=lambda item: (item[1].http_status, item[0])):
        yield f"| `{name}` | {kind.http_status} | {in_cell((kind.__doc__ or '').strip().splitlines()[0])} |"


def in_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
