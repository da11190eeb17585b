"""Config files of trainers: structured data with templates in it, filled in for one job."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, TypeGuard

from stationmaster.errors import UserError
from stationmaster.recipes.config_text import config_text
from stationmaster.recipes.parameters import is_plain_text
from stationmaster.recipes.schema import Config
from stationmaster.recipes.templating import Values, evaluate, render

CONFIG_FOLDER = "config"

_ONE_VALUE = re.compile(r"\{\{((?:(?!\}\}|\{\{).)*)\}\}", re.DOTALL)
_LEFT_OUT = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    """One file, ready to send."""

    path: str
    """Its place in the job's folder."""
    text: str


def filled_in(config: Config, values: Values) -> ConfigFile:
    """The file that `config` is for one job; raises TemplateFault, or UserError for a value that is not text."""
    data = _filled(config.data, values)
    return ConfigFile(path=f"{CONFIG_FOLDER}/{config.path}", text=config_text(data, config.format))


def is_conditional(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether `value` is left out of its file unless an expression is true."""
    return isinstance(value, dict) and value.keys() == {"when", "value"}


def _filled(value: Any, values: Values) -> Any:
    if is_conditional(value):
        return _filled(value["value"], values) if evaluate(str(value["when"]), values) else _LEFT_OUT
    if isinstance(value, dict):
        pairs = ((key, _filled(inner, values)) for key, inner in value.items())
        return {key: inner for key, inner in pairs if inner is not _LEFT_OUT}
    if isinstance(value, list):
        return [inner for each in value if (inner := _filled(each, values)) is not _LEFT_OUT]
    return _checked(_text_filled(value, values), value) if isinstance(value, str) else value


def _text_filled(text: str, values: Values) -> Any:
    """A text that is one value alone keeps that value's type: `{{ parameters.steps }}` is a number in the file."""
    alone = _ONE_VALUE.fullmatch(text.strip())
    return evaluate(alone[1].strip(), values) if alone else render(text, values)


def _checked(value: Any, template: str) -> Any:
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str) and not is_plain_text(text):
            raise UserError(f"a value for `{template}` has NUL or invalid characters", hint="use plain text")
    return value
