"""The text beneath each field of a model, for reference pages and schemas.

Read from the source when it is asked for: pydantic's own `use_attribute_docstrings` reads it at every start.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema


def field_texts(model: type[BaseModel]) -> dict[str, str]:
    """By the field's name; fields that a model has from another one included."""
    texts: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if issubclass(kind, BaseModel) and kind is not BaseModel and not _is_filled_in(kind):
            texts |= _own_texts(kind)
    return texts


def _is_filled_in(model: type[BaseModel]) -> bool:
    """Whether it is a generic model with its parameters, such as `Page[int]`, which has no source of its own."""
    return model.__pydantic_generic_metadata__["origin"] is not None


@cache
def _own_texts(model: type[BaseModel]) -> dict[str, str]:
    texts = {}
    for field, beneath in pairwise(_declared_in(model.__module__)[model.__qualname__].body):
        match field, beneath:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = inspect.cleandoc(text)
    return texts


@cache
def _declared_in(module: str) -> dict[str, ast.ClassDef]:
    """The classes of a module by their qualified names. `inspect.getsource` would parse the module for each of them."""
    return dict(_classes(ast.parse(inspect.getsource(sys.modules[module])), ""))


def _classes(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.ClassDef]]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.ClassDef(name=name):
                yield prefix + name, child
                yield from _classes(child, f"{prefix}{name}.")
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield from _classes(child, f"{prefix}{name}.<locals>.")
            case _:
                yield from _classes(child, prefix)


class DescribedSchema(GenerateJsonSchema):
    """JSON Schema with the text beneath each field as its description."""

    def model_schema(self, schema: Any) -> dict[str, Any]:
        described = super().model_schema(schema)
        for name, text in field_texts(schema["cls"]).items():
            if name in described.get("properties", {}):
                described["properties"][name]["description"] = text
        return described
