"""A recipe file's text as plain data that remembers its lines.

The YAML read here is the safe core: `true` and `false` are the only booleans, dates stay text, `1e-4` is a number,
and aliases are refused, so that a value means what it looks like and a small file cannot grow into a large one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

Path = tuple[str | int, ...]

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where PyYAML was built with it
_MOST_CHARACTERS = 1_000_000
_DEEPEST = 32
_TAGS = frozenset(
    f"tag:yaml.org,2002:{kind}" for kind in ("map", "seq", "str", "null", "bool", "int", "float", "timestamp")
)
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


class Unreadable(Exception):
    """The text is not a document."""

    def __init__(self, message: str, *, line: int | None = None, fix: str | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.fix = fix


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Data, and the line on which each part of it begins."""

    data: Any
    lines: dict[Path, int]

    def line_of(self, path: Sequence[str | int]) -> int | None:
        """The line of the deepest part of `path` that is in the file; names that are not there are passed over."""
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


def read_document(text: str, *, is_json: bool) -> Document:
    """The document in `text`; raises Unreadable with the line where that is known."""
    if len(text) > _MOST_CHARACTERS:
        raise Unreadable("the file is larger than a recipe can be", fix="keep data out of the recipe file")
    try:
        return _from_json(text) if is_json else _from_yaml(text)
    except RecursionError:
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


def _from_yaml(text: str) -> Document:
    try:
        _refuse_aliases_and_depth(text)
        node = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise Unreadable(f"not YAML: {error.problem or error}", line=mark.line + 1 if mark else None) from None
    except yaml.YAMLError as error:
        raise Unreadable(f"not YAML: {error}") from None
    lines: dict[Path, int] = {}
    return Document(data=None if node is None else _value(node, (), lines), lines=lines)


def _refuse_aliases_and_depth(text: str) -> None:
    """Read on only as far as the text is harmless: what comes later costs much more per level of nesting."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        line = event.start_mark.line + 1 if event.start_mark else None
        if isinstance(event, yaml.AliasEvent):
            raise Unreadable("aliases (*name) are not allowed", line=line, fix="write the value out")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise Unreadable("the file is nested too deeply", line=line)


def _value(node: yaml.Node, path: Path, lines: dict[Path, int]) -> Any:
    line = node.start_mark.line + 1
    lines.setdefault(path, line)
    if node.tag not in _TAGS:
        raise Unreadable(f"the tag {node.tag} is not allowed", line=line, fix="write the value without it")
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, lines)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*path, index), lines) for index, item in enumerate(node.value)]
    return _scalar(str(node.value), quoted=bool(getattr(node, "style", None)))


def _mapping(node: yaml.MappingNode, path: Path, lines: dict[Path, int]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise Unreadable("a name must be plain text", line=line)
        key = key_node.value
        if key in seen:
            raise Unreadable(f"`{key}` is given twice", line=line, fix="keep one of them")
        lines[(*path, key)] = line
        seen[key] = _value(value_node, (*path, key), lines)
    return seen


def _scalar(text: str, *, quoted: bool) -> Any:
    if quoted:  # text, whatever it looks like
        return text
    if text in ("", "~", "null"):
        return None
    if text in ("true", "false"):
        return text == "true"
    if _INTEGER.fullmatch(text) and len(text) <= 18:
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
