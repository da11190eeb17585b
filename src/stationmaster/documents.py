"""Strict reading of YAML and JSON that people write by hand.

Aliases, deep nesting, tags and duplicate names are refused, so that a small file cannot grow into a large one and no
value is silently dropped. Recipes are read with plain scalars, so that a value means what it looks like: `true` and
`false` are the only booleans, dates stay text, `1e-4` is a number. Config and job files have YAML's own scalars.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

Path = tuple[str | int, ...]
ReadScalar = Callable[[yaml.ScalarNode], Any]

_FAST_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, if PyYAML was built with it
_MOST_CHARACTERS = 1_000_000
_DEEPEST = 32
_TAGS = frozenset(
    f"tag:yaml.org,2002:{kind}" for kind in ("map", "seq", "str", "null", "bool", "int", "float", "timestamp")
)
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


class Unreadable(Exception):
    """The text cannot be read; `line` and `fix` are None if unknown."""

    def __init__(self, message: str, *, line: int | None = None, fix: str | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.fix = fix


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Data, and the line on which each part of it starts."""

    data: Any
    lines: dict[Path, int]

    def line_of(self, path: Sequence[str | int]) -> int | None:
        """The line of the deepest part of `path` that is in the file; unknown names are skipped."""
        return self.lines.get(self._known(path))

    def name_of(self, path: Sequence[str | int]) -> str:
        """`path` as a person writes it: steps[0].argv."""
        name = ""
        for part in path:
            name += f"[{part}]" if isinstance(part, int) else f".{part}" if name else part
        return name

    def _known(self, path: Sequence[str | int]) -> Path:
        known: Path = ()
        for part in path:
            if (*known, part) in self.lines:
                known = (*known, part)
        return known


def read_yaml(text: str) -> Any:
    """The data in YAML `text`, with YAML's own scalars. Raises ValueError, in one line.

    >>> read_yaml("worker: {slots: 3, enabled: yes}")
    {'worker': {'slots': 3, 'enabled': True}}
    """
    constructor = yaml.SafeLoader("")
    try:
        return _from_yaml(text, yaml.SafeLoader, constructor.construct_object).data
    except Unreadable as problem:
        where = f" (line {problem.line})" if problem.line else ""
        fix = f": {problem.fix}" if problem.fix else ""
        raise ValueError(f"{problem}{where}{fix}") from None


def read_document(text: str, *, is_json: bool) -> Document:
    """The document in `text`, with plain scalars and its lines. Raises Unreadable."""
    if len(text) > _MOST_CHARACTERS:
        raise Unreadable("the file is larger than a recipe can be", fix="keep data out of the recipe file")
    try:
        return _from_json(text) if is_json else _from_yaml(text, _FAST_LOADER, _plain_scalar)
    except RecursionError:  # JSON; YAML is stopped at its depth
        raise Unreadable("the file is nested too deeply") from None


def _from_json(text: str) -> Document:
    try:
        data = json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise Unreadable(f"not JSON: {error.msg}", line=error.lineno) from None
    except ValueError:
        raise Unreadable("a number has too many digits") from None
    return Document(data=data, lines={})


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for key, value in pairs:
        if key in seen:
            raise Unreadable(f"`{key}` is given twice", fix="keep one of them")
        seen[key] = value
    return seen


def _from_yaml(text: str, loader: Any, read_scalar: ReadScalar) -> Document:
    lines: dict[Path, int] = {}
    try:
        _refuse_aliases_and_depth(text, loader)
        node = yaml.compose(text, Loader=loader)
        data = None if node is None else _value(node, (), lines, read_scalar)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or str(error)
        raise Unreadable(f"not YAML: {problem}", line=mark.line + 1 if mark else None) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # an impossible date, a number with too many digits
        raise Unreadable(f"not YAML: {' '.join(str(error).split())}") from None
    return Document(data=data, lines=lines)


def _refuse_aliases_and_depth(text: str, loader: Any) -> None:
    """Stop at the first alias or level too deep: composing it would cost much more per level of nesting."""
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        line = event.start_mark.line + 1 if event.start_mark else None
        if isinstance(event, yaml.AliasEvent):
            raise Unreadable("aliases (*name) are not allowed", line=line, fix="write the value out")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise Unreadable("the file is nested too deeply", line=line)


def _value(node: yaml.Node, path: Path, lines: dict[Path, int], read_scalar: ReadScalar) -> Any:
    line = node.start_mark.line + 1
    lines.setdefault(path, line)
    if node.tag not in _TAGS:
        raise Unreadable(f"the tag {node.tag} is not allowed", line=line, fix="write the value without it")
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, lines, read_scalar)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*path, index), lines, read_scalar) for index, item in enumerate(node.value)]
    assert isinstance(node, yaml.ScalarNode)
    return read_scalar(node)


def _mapping(node: yaml.MappingNode, path: Path, lines: dict[Path, int], read_scalar: ReadScalar) -> dict[str, Any]:
    seen: set[str] = set()
    values: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise Unreadable("a name must be plain text", line=line)
        name = key_node.value
        if name in seen:
            raise Unreadable(f"`{name}` is given twice", line=line, fix="keep one of them")
        seen.add(name)
        lines[(*path, name)] = line
        key = name if read_scalar is _plain_scalar else read_scalar(key_node)
        values[key] = _value(value_node, (*path, name), lines, read_scalar)
    return values


def _plain_scalar(node: yaml.ScalarNode) -> Any:
    text = str(node.value)
    if getattr(node, "style", None):  # quoted: text, no matter what it looks like
        return text
    if text in ("", "~", "null"):
        return None
    if text in ("true", "false"):
        return text == "true"
    if _INTEGER.fullmatch(text) and len(text) <= 18:
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
