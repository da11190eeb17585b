"""Converts the parts of a job's attempt to one flat JSON object and back.

Reading is tolerant: keys that newer code wrote, and values that cannot be read, are kept aside and written back. How
to read and write a field follows from its type and is worked out once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from stationmaster.model import (
    Cleanup,
    Collection,
    Ending,
    Fetching,
    Funding,
    Job,
    LocalAccess,
    ModelDelivery,
    RentedMachine,
    Requests,
    SavedModel,
    Setbacks,
    SshAccess,
    Watching,
)
from stationmaster.store.json_text import loads

PARTS: dict[str, type[Any]] = {  # by the field of the job
    "machine": RentedMachine,
    "ending": Ending,
    "watching": Watching,
    "collection": Collection,
    "requests": Requests,
    "fetching": Fetching,
    "model": SavedModel,
    "funding": Funding,
    "setbacks": Setbacks,
}
_ACCESSES = {"ssh": SshAccess, "local": LocalAccess}
_SPARSE = (Cleanup, ModelDelivery)
"""Values stored like the parts, without fields at their default. All others are stored whole."""

_UNREADABLE = (TypeError, ValueError, KeyError)

_NOTHING = object()  # equal to no value

Convert = Callable[[Any], Any]


def attempt_to_json(job: Job) -> dict[str, Any]:
    """The JSON object of the job's attempt, without fields at their default."""
    stored = dict(job.unread)
    for part in PARTS:
        stored.update(part_to_json(part, getattr(job, part)))
    return stored


def part_to_json(part: str, value: Any) -> dict[str, Any]:
    """The keys and values of one part; `part` is the field of the job."""
    tables = _tables()
    if value is tables.empty[part]:
        return {}
    return {
        key: write(found) if write else found
        for key, name, default, write in tables.fields[part]
        if (found := getattr(value, name)) != default
    }


def attempt_from_text(text: str) -> dict[str, Any]:
    """The parts of the job's attempt by field of the job, and `unread`."""
    tables = _tables()
    known: dict[str, dict[str, Any]] = {}
    unread: dict[str, Any] = {}
    for key, value in loads(text).items():
        if key not in tables.places:
            unread[key] = value
            continue
        part, name, read = tables.places[key]
        try:
            known.setdefault(part, {})[name] = read(value)
        except _UNREADABLE:
            unread[key] = value
    return {**tables.empty, **{part: PARTS[part](**values) for part, values in known.items()}, "unread": unread}


class _Converter(NamedTuple):
    read: Convert
    write: Convert


class _Field(NamedTuple):
    key: str
    name: str
    default: Any
    write: Convert | None  # None: stored unchanged


class _Place(NamedTuple):
    part: str
    name: str
    read: Convert


class _Tables(NamedTuple):
    empty: dict[str, Any]  # by part: all fields at their defaults
    fields: dict[str, list[_Field]]  # by part
    places: dict[str, _Place]  # by key


@cache
def _tables() -> _Tables:
    empty = {part: cls() for part, cls in PARTS.items()}
    fields: dict[str, list[_Field]] = {}
    places: dict[str, _Place] = {}
    for part, cls in PARTS.items():
        hints, fields[part] = get_type_hints(cls), []
        for item in dataclasses.fields(cls):
            key, (read, write) = item.metadata.get("key", item.name), _converter(hints[item.name])
            assert key not in places, f"two fields are stored as {key}"
            places[key] = _Place(part, item.name, read)
            default = getattr(empty[part], item.name)
            fields[part].append(_Field(key, item.name, default, None if write is _unchanged else write))
    return _Tables(empty, fields, places)


def _converter(hint: Any) -> _Converter:
    """How to read values of a type from JSON and write them. Raises KeyError for a type that JSON cannot hold."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _one_of(inner)
    if origin is tuple:
        return _sequence(inner[0]) if inner[1:] == (...,) else _row(inner)
    if origin is Mapping:
        return _mapping(inner[1])
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _value(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _Converter(hint, lambda word: word.value)
    plain = getattr(hint, "__supertype__", hint)  # of a NewType
    return _Converter(_SCALARS[plain], _unchanged)


def _one_of(members: tuple[Any, ...]) -> _Converter:
    """A value or None, or one of the access classes."""
    some = [member for member in members if member is not NoneType]
    read, write = _tagged(_ACCESSES) if len(some) > 1 else _converter(some[0])
    return _Converter(
        lambda value: None if value is None else read(value),
        write if write is _unchanged else lambda value: None if value is None else write(value),
    )


def _tagged(classes: Mapping[str, type]) -> _Converter:
    """One of several dataclasses, told apart by `kind`."""
    by_kind = {kind: _value(cls) for kind, cls in classes.items()}
    by_class = {cls: (kind, by_kind[kind].write) for kind, cls in classes.items()}

    def write(value: Any) -> dict[str, Any]:
        kind, write_fields = by_class[type(value)]
        return {"kind": kind, **write_fields(value)}

    return _Converter(lambda value: by_kind[value["kind"]].read(value), write)


def _value(cls: type) -> _Converter:
    """A dataclass inside a part; reading ignores unknown keys."""
    hints = get_type_hints(cls)
    converters = {item.name: _converter(hints[item.name]) for item in dataclasses.fields(cls)}
    readers = {name: converter.read for name, converter in converters.items()}
    left_out = _defaults(cls) if cls in _SPARSE else {}
    writers = [(name, write, left_out.get(name, _NOTHING)) for name, (_, write) in converters.items()]

    def read(value: Any) -> Any:
        return cls(**{name: readers[name](one) for name, one in _mapping_only(value).items() if name in readers})

    def write_all(value: Any) -> dict[str, Any]:
        found = ((name, write, getattr(value, name), default) for name, write, default in writers)
        return {name: write(one) for name, write, one, default in found if one != default}

    return _Converter(read, write_all)


def _defaults(cls: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for item in dataclasses.fields(cls):
        if item.default is not dataclasses.MISSING:
            found[item.name] = item.default
        elif item.default_factory is not dataclasses.MISSING:
            found[item.name] = item.default_factory()
    return found


def _sequence(inner: Any) -> _Converter:
    read, write = _converter(inner)

    def read_all(value: Any) -> tuple[Any, ...]:
        return tuple([read(one) for one in _list_only(value)])

    return _Converter(read_all, _unchanged if write is _unchanged else lambda value: [write(one) for one in value])


def _row(inner: tuple[Any, ...]) -> _Converter:
    """A tuple of fixed length, of values that JSON can hold unchanged."""
    readers = [_converter(one).read for one in inner]

    def read(value: Any) -> tuple[Any, ...]:
        return tuple([read(one) for read, one in zip(readers, _list_only(value), strict=True)])

    return _Converter(read, _unchanged)


def _mapping(inner: Any) -> _Converter:
    """A mapping to values that JSON can hold unchanged, or to Any, whose values are not checked."""
    if inner is Any:
        return _Converter(_mapping_only, _unchanged)
    read = _converter(inner).read
    return _Converter(lambda value: {key: read(one) for key, one in _mapping_only(value).items()}, _unchanged)


def _unchanged(value: Any) -> Any:
    return value


def _only(*accepted: type) -> Convert:
    def read(value: Any) -> Any:
        if type(value) not in accepted:
            raise TypeError
        return value

    return read


_mapping_only, _list_only = _only(dict), _only(list)
_SCALARS: dict[Any, Convert] = {str: _only(str), bool: _only(bool), int: _only(int, float), float: _only(int, float)}
