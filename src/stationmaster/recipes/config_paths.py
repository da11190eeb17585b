"""The parameter behind a path in a trainer's config, found in the recipe's config before it is filled in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from stationmaster.recipes.configs import is_conditional
from stationmaster.recipes.schema import Config, Recipe

PARAMETERS = "parameters"
"""The first word of the path of a setting that no config has, only the recipe: `parameters.batch_size`."""

_PARAMETER_ALONE = re.compile(r"\{\{\s*parameters\.([a-z][a-z0-9_]*)\s*\}\}")
_PART = re.compile(r"(?P<key>[^.\[\]]+)(?:\[(?P<index>\d*|\*)\])?")

Path = tuple["Key", ...]


@dataclass(frozen=True, slots=True)
class Key:
    """One step into a config: a name, and the place in the list that it holds, if any."""

    name: str
    index: int | None = None

    def is_same(self, other: Key) -> bool:
        """Whether both are the same place; a missing index is any."""
        return self.name == other.name and (None in (self.index, other.index) or self.index == other.index)


_AI_TOOLKIT_PROCESS: Path = (Key("config"), Key("process", 0))
"""What paths of ai-toolkit may leave out."""


def parameter_behind(recipe: Recipe, config_path: str) -> str | None:
    """Return the parameter that a config has at this path, unchanged; None if it has none or an expression of several.

    `[0]`, `[*]`, `[]` and no index are the same, and the sections of a TOML file mean nothing.
    """
    asked = read_path(config_path)
    match asked:
        case (Key(name=first), Key(name=name)) if first == PARAMETERS:
            return name if name in recipe.parameters else None
    for config in recipe.configs:
        for place, name in parameter_leaves(config):
            if name in recipe.parameters and _is_at(asked, place, config):
                return name
    return None


def parameter_leaves(config: Config) -> Iterator[tuple[Path, str]]:
    """Yield where a config has a parameter alone as a value, and which."""
    for place, value in _leaves((), config.data):
        found = _PARAMETER_ALONE.fullmatch(value.strip()) if isinstance(value, str) else None
        if found:
            yield place, found[1]


def read_path(text: str) -> Path:
    """Read a path such as `config.process[0].train.lr`; empty if it is none."""
    parts = [_PART.fullmatch(part) for part in text.split(".")]
    if not all(parts):
        return ()
    return tuple(
        Key(part["key"], int(part["index"]) if (part["index"] or "").isdecimal() else None) for part in parts if part
    )


def is_same_path(one: str, other: str) -> bool:
    """Whether two paths name the same place.

    >>> is_same_path("config.process[0].datasets[*].resolution", "datasets.resolution")
    True
    """
    first, second = (_without_process(read_path(text)) for text in (one, other))
    return bool(first) and _is_same(first, second)


def _is_at(asked: Path, place: Path, config: Config) -> bool:
    if not asked:
        return False
    if config.format == "toml":
        return asked[-1].is_same(place[-1])
    return _is_same(_without_process(asked), _without_process(place))


def _is_same(one: Path, other: Path) -> bool:
    return len(one) == len(other) and all(a.is_same(b) for a, b in zip(one, other, strict=True))


def _without_process(path: Path) -> Path:
    begins = _is_same(path[: len(_AI_TOOLKIT_PROCESS)], _AI_TOOLKIT_PROCESS)
    return path[len(_AI_TOOLKIT_PROCESS) :] if begins else path


def _leaves(place: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    if is_conditional(value):
        yield from _leaves(place, value["value"])
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves((*place, Key(name)), inner)
    elif isinstance(value, list) and place:
        for index, inner in enumerate(value):
            yield from _leaves((*place[:-1], Key(place[-1].name, index)), inner)
    else:
        yield place, value
