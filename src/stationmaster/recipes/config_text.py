"""Data as the text of a YAML, TOML or JSON file, each value written so that it reads back as itself.

No `$` is ever written plainly: some trainers replace `${NAME}` in the text of their config by the environment's
values before they parse it, and a trigger word must not be able to ask for a secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Any, Literal

import yaml

from stationmaster.recipes.templating import TemplateFault

Format = Literal["yaml", "toml", "json"]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPED_IN_YAML = re.compile(r"[$\r\n\x85\u2028\u2029]")  # line breaks of any kind would be folded
_NOT_IN_TOML = re.compile(r"[$\x7f]")


def config_text(data: Mapping[str, Any], written_as: Format) -> str:
    """The file's text; raises TemplateFault if the format cannot represent `data`."""
    match written_as:
        case "json":
            return json.dumps(data, indent=2, allow_nan=False).replace("$", "\\u0024") + "\n"
        case "yaml":
            return str(yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**9))
        case "toml":
            return "\n".join(_toml_lines(data, ())).lstrip("\n") + "\n"


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless=False)

    def write_double_quoted(self, text: str, split: bool = True) -> None:
        stream, self.stream = self.stream, StringIO()
        super().write_double_quoted(text, split=False)
        written = self.stream.getvalue()
        self.stream = stream
        self.stream.write(written.replace("$", "\\x24"))


def _quoted_if_needed(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if _ESCAPED_IN_YAML.search(text) else None)


_Dumper.add_representer(str, _quoted_if_needed)


def _toml_lines(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    """A table's own values first, then the tables in it: TOML has no way back out of a table."""
    for key, value in table.items():
        if not isinstance(value, Mapping) and not _is_tables(value):
            yield f"{_toml_key(key)} = {_toml_value(value)}"
    for key, value in table.items():
        inner = (*path, key)
        name = ".".join(_toml_key(part) for part in inner)
        if isinstance(value, Mapping):
            yield from ("", f"[{name}]", *_toml_lines(value, inner))
        elif _is_tables(value):
            for each in value:
                yield from ("", f"[[{name}]]", *_toml_lines(each, inner))


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, Mapping) for each in value)


def _toml_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _toml_text(key)


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _toml_text(value)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return f"[{', '.join(_toml_value(each) for each in value)}]"
    raise TemplateFault(f"TOML cannot hold {value!r} here; leave the key out")


def _toml_text(text: str) -> str:
    written = json.dumps(text, ensure_ascii=False)
    return _NOT_IN_TOML.sub(lambda match: f"\\u{ord(match[0]):04x}", written)
