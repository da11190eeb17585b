"""The query language of searches and lists: `{"field": {"op": value}}`, values often sent as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stationmaster.simulator.api_refusals import invalid_request

Query = Mapping[str, Mapping[str, Any]]


def matches(row: Mapping[str, Any], query: Query) -> bool:
    """Whether every condition on a field of `row` holds; conditions on missing fields are ignored.

    >>> matches({"num_gpus": 2, "reliability": 0.97}, {"num_gpus": {"eq": "2"}, "reliability": {"gt": "0.95"}})
    True
    """
    return all(
        _OPERATORS[_known(operator)](_Field(name, row[name]), wanted)
        for name, conditions in query.items()
        if name in row
        for operator, wanted in conditions.items()
    )


def ordered(rows: Sequence[Mapping[str, Any]], order: Sequence[Sequence[str]]) -> list[Mapping[str, Any]]:
    """The rows sorted by `[["dph_total", "asc"], …]`, the first pair first; rows without a value last.

    >>> [row["a"] for row in ordered([{"a": 1}, {"a": None}, {"a": 3}], [["a", "desc"]])]
    [3, 1, None]
    """
    result = list(rows)
    for field, direction in reversed([(pair[0], pair[1]) for pair in order]):
        known = [row for row in result if row.get(field) is not None]
        unknown = [row for row in result if row.get(field) is None]
        try:
            known.sort(key=lambda row: row[field], reverse=str(direction).lower() == "desc")
        except TypeError:
            raise invalid_request(f"cannot order by {field}") from None
        result = known + unknown
    return result


class _Field:
    """One value of a row; converts the values it is compared with as the service does."""

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.value = _numeric_version(value) if name == "driver_version" else value

    def equals(self, wanted: Any) -> bool:
        if self.name == "geolocation":
            # "Quebec, CA" matches by its two-letter code and by the whole text.
            return str(wanted) in (str(self.value), str(self.value).rsplit(", ", 1)[-1])
        return bool(self.value == self.read(wanted))

    def compares(self, wanted: Any, holds: Callable[[Any, Any], bool]) -> bool:
        return self.value is not None and holds(self.value, self.read(wanted))

    def read(self, wanted: Any) -> Any:
        try:
            if wanted is None or self.value is None:
                return wanted
            if isinstance(self.value, bool):
                return str(wanted).strip().lower() in ("true", "1", "1.0", "yes")
            if isinstance(self.value, int | float):
                return float(wanted)
            return str(wanted)
        except (TypeError, ValueError):
            raise invalid_request(f"{self.name} cannot be compared with {wanted!r}") from None


def _numeric_version(value: Any) -> Any:
    parts = str(value).split(".")
    return int("".join(part.zfill(3) for part in parts)) if all(part.isdigit() for part in parts) else value


def _known(operator: str) -> str:
    if operator not in _OPERATORS:
        raise invalid_request(f"unknown operator {operator!r}")
    return operator


def _members(wanted: Any) -> Sequence[Any]:
    return wanted if isinstance(wanted, list) else [wanted]


_OPERATORS: dict[str, Callable[[_Field, Any], bool]] = {
    "eq": lambda field, wanted: field.equals(wanted),
    "neq": lambda field, wanted: not field.equals(wanted),
    "gt": lambda field, wanted: field.compares(wanted, lambda have, want: have > want),
    "gte": lambda field, wanted: field.compares(wanted, lambda have, want: have >= want),
    "lt": lambda field, wanted: field.compares(wanted, lambda have, want: have < want),
    "lte": lambda field, wanted: field.compares(wanted, lambda have, want: have <= want),
    "in": lambda field, wanted: any(field.equals(member) for member in _members(wanted)),
    "notin": lambda field, wanted: not any(field.equals(member) for member in _members(wanted)),
}
