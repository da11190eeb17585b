"""The text of a config file with every setting and its meaning: chosen ones set, all others commented out."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from stationmaster.durations import format_duration, parse_duration
from stationmaster.money import from_dollars
from stationmaster.recipes.field_texts import field_texts
from stationmaster.settings import Settings

_WIDTH = 100


def starter_text(chosen: Mapping[str, Any]) -> str:
    """A TOML file that sets what was `chosen`, by dotted names."""
    return "\n".join([*_HEAD, *_section(Settings, "", chosen)]) + "\n"


def is_secret(name: str) -> bool:
    """Whether the setting of this dotted name is a key, token or password. Raises KeyError if there is none."""
    return _mentions_secret(setting_fields()[name].annotation)


def setting_fields(model: type[BaseModel] = Settings, path: str = "") -> dict[str, FieldInfo]:
    """Every setting that has a line of its own in the file, by its dotted name."""
    found: dict[str, FieldInfo] = {}
    for name, info in model.model_fields.items():
        inner = _section_in(info)
        found |= {f"{path}{name}": info} if inner is None else setting_fields(inner, f"{path}{name}.")
    return found


_HEAD = (
    "# Settings of Stationmaster, written by `stationmaster init`. Edit them here: remove the # before a setting to",
    "# change it. What is commented out shows the default. Keep this file private if it has keys in it.",
    "# Environment variables win over this file: worker.slots is STATIONMASTER_WORKER__SLOTS.",
)


def _section(model: type[BaseModel], path: str, chosen: Mapping[str, Any]) -> Iterator[str]:
    texts = field_texts(model)
    inner = {name: section for name, info in model.model_fields.items() if (section := _section_in(info))}
    for name, info in model.model_fields.items():
        if name not in inner and name != "home":  # the file is in the home, or was named together with it
            yield ""
            yield from _comment(texts.get(name, ""))
            yield _line(name, info, f"{path}{name}", chosen)
    for name, section in inner.items():
        yield from ("", "", f"[{path}{name}]")
        yield from _section(section, f"{path}{name}.", chosen)


def _line(name: str, info: FieldInfo, dotted: str, chosen: Mapping[str, Any]) -> str:
    if dotted in chosen:
        return f"{name} = {_toml(chosen[dotted])}"
    return f"# {name} = {_toml(_default(info))}"


def _comment(text: str) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), _WIDTH, initial_indent="# ", subsequent_indent="# ")


def _default(info: FieldInfo) -> Any:
    value = info.get_default(call_default_factory=True)
    readers = {getattr(one, "func", None) for one in info.metadata}
    if value is not None and parse_duration in readers:
        return format_duration(value)
    if value is not None and from_dollars in readers:
        return value / 1_000_000
    return "" if value is None else value


def _toml(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case list() | tuple():
            return f"[{', '.join(map(_toml, value))}]"
        case dict():
            return f"{{{', '.join(f'{json.dumps(key)} = {_toml(each)}' for key, each in value.items())}}}"
        case PurePath() | str():
            return json.dumps(str(value), ensure_ascii=False)
    raise TypeError(f"{type(value).__name__} has no place in a config file")


def _section_in(info: FieldInfo) -> type[BaseModel] | None:
    """The section that a field is; a list or table of sections is one setting."""
    kind = info.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _mentions_secret(annotation: Any) -> bool:
    if annotation is SecretStr or (isinstance(annotation, type) and issubclass(annotation, SecretStr)):
        return True
    return get_origin(annotation) is not None and any(map(_mentions_secret, get_args(annotation)))
