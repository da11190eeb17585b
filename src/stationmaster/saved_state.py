"""Dataclasses as plain JSON values and back, for state that is stored between two visits of a job.

Each field is stored under its name without a leading underscore, so renaming a field changes the stored format.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

NOT_STORED: Mapping[str, bool] = {"stored": False}
"""Metadata of a field that the caller passes to `from_json` instead."""

State = TypeVar("State")


def to_json(state: Any) -> dict[str, Any]:
    """The stored fields of a dataclass as new plain values; tuples become lists."""
    return {item.key: item.write(getattr(state, item.name)) for item in _stored(type(state))}


def from_json(cls: type[State], document: Mapping[str, Any], **not_stored: Any) -> State:
    """The dataclass that `to_json` was given. Ignores unknown keys; a missing one takes the field's default.

    >>> from dataclasses import dataclass, field
    >>> @dataclass
    ... class Marks:
    ...     limit: float = field(metadata=NOT_STORED)
    ...     _at: list[tuple[float, float]] = field(default_factory=list)
    >>> from_json(Marks, to_json(Marks(limit=9.0, _at=[(1.0, 2.0)])), limit=5.0)
    Marks(limit=5.0, _at=[(1.0, 2.0)])
    """
    values = {item.name: item.read(document[item.key]) for item in _stored(cls) if item.key in document}
    return cls(**values, **not_stored)


_Convert = Callable[[Any], Any]


class _StoredField(NamedTuple):
    key: str
    name: str
    write: _Convert
    read: _Convert


_known: dict[type, tuple[_StoredField, ...]] = {}


def _stored(cls: type) -> tuple[_StoredField, ...]:
    if cls not in _known:
        hints = get_type_hints(cls)
        stored = [item.name for item in fields(cls) if item.metadata.get("stored", True)]
        _known[cls] = tuple(_StoredField(name.removeprefix("_"), name, *_converters(hints[name])) for name in stored)
    return _known[cls]


def _converters(hint: Any) -> tuple[_Convert, _Convert]:
    """How a value of this type is written as plain JSON, and how it is read back."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        kinds = [argument for argument in arguments if argument is not type(None)]
        write, read = _converters(kinds[0]) if len(kinds) == 1 else (_as_is, _as_is)
        return _unless_none(write), _unless_none(read)
    if origin is list:
        write, read = _converters(arguments[0])
        return _each(write), _each(read)
    if origin is tuple:
        return list, tuple  # of plain values only, as is a dict
    if origin is dict:
        return dict, dict
    if is_dataclass(hint) and isinstance(hint, type):
        return to_json, lambda value: from_json(hint, value)
    if isinstance(hint, type) and issubclass(hint, tuple):
        return list, lambda value: hint(*value)
    return _as_is, _as_is


def _unless_none(convert: _Convert) -> _Convert:
    return convert if convert is _as_is else lambda value: None if value is None else convert(value)


def _each(convert: _Convert) -> _Convert:
    return list if convert is _as_is else lambda values: [convert(value) for value in values]


def _as_is(value: Any) -> Any:
    return value
