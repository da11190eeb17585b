"""Makes the table of completion from the commands themselves; `make docs` writes it to `words.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, get_args

from stationmaster.cli.completion import table
from stationmaster.event_log import LEVELS

#: By the name of the parameter, or by command and parameter where that says more.
_KINDS: Mapping[str, str] = {
    "job": table.JOB,
    "jobs": table.JOB,
    "recipe": table.RECIPE,
    "parameter": table.RECIPE_PARAMETER,
    "model": table.MODEL,
    "owner": table.USER,
    "user": table.USER,
    "provider": table.PROVIDER,
    "account": table.ACCOUNT,
    "home": table.FOLDER_PATH,
    "dataset": table.FILE_PATH,
    "source": table.FILE_PATH,
    "folder": table.FOLDER_PATH,
    "files": table.FILE_PATH,
    "listing": table.FILE_PATH,
    "save job": table.RUNNING_JOB,
    "sample job": table.RUNNING_JOB,
    "stop job": table.RUNNING_JOB,
    "cancel job": table.RUNNING_JOB,
    "ssh job": table.RUNNING_JOB,
    "retry job": table.ENDED_JOB,
    "jobs rm job": table.ENDED_JOB,
    "analyze target": table.JOB_OR_FILE,
    "metrics target": table.JOB_OR_FILE,
    "analyze job": table.TEXT,  # an id in a file, not a job of this computer
    "metrics job": table.TEXT,
    "pull target": table.FOLDER_PATH,
    "models download target": table.FOLDER_PATH,
    "users set name": table.USER,
    "users show name": table.USER,
    "users rm name": table.USER,
}
#: Choices that are checked by the command itself, not by their type.
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "log_level": LEVELS,
    "shell": ("bash", "zsh", "fish"),
    "stop_signal": ("TERM", "INT", "HUP", "USR1", "USR2"),
}


def table_text(tree: Any) -> str:
    """The table as JSON, a line for each parameter, so that a change is easy to read."""
    return _indented(_word(tree, ()), "") + "\n"


def _word(command: Any, path: tuple[str, ...]) -> dict[str, Any]:
    flags, arguments, has_many = [], [], False
    for each in command.params:
        if getattr(each, "hidden", False):
            continue
        if each.param_type_name == "option":
            flags.append(_flag(each, path))
        else:
            arguments.append(_value(each, path))
            has_many = each.nargs == -1
    commands = {
        name: _word(inner, (*path, name))
        for name, inner in sorted(getattr(command, "commands", {}).items())
        if not inner.hidden
    }
    found = {
        "summary": (command.help or "").strip().partition("\n")[0],
        "flags": flags,
        "arguments": arguments,
        "has_many": has_many,
        "takes_recipe": type(command).__name__ == "RecipeCommand",
        "commands": commands,
    }
    return {name: value for name, value in found.items() if value or name == "summary"}


def _flag(option: Any, path: tuple[str, ...]) -> dict[str, Any]:
    found = {"names": [*option.opts, *option.secondary_opts], "help": (option.help or "").partition("\n")[0]}
    if not option.is_flag:
        found["value"] = _value(option, path)
    if option.multiple:
        found["repeatable"] = True
    return found


def _value(parameter: Any, path: tuple[str, ...]) -> dict[str, Any]:
    annotation = parameter.type_descriptor.annotation
    kind = next((each for each in get_args(annotation) if isinstance(each, type)), annotation)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"choices": [str(each.value) for each in kind]}
    if parameter.name in _CHOICES:
        return {"choices": [*_CHOICES[parameter.name]]}
    usual = table.FILE_PATH if isinstance(kind, type) and issubclass(kind, Path) else table.TEXT
    by_command = _KINDS.get(" ".join((*path, parameter.name)))
    return {"kind": by_command or _KINDS.get(parameter.name, usual)}


def _indented(value: Any, margin: str) -> str:
    """JSON in which only objects of commands and lists of parameters have lines of their own."""
    inner = f"{margin} "
    if isinstance(value, dict) and ("summary" in value or all(isinstance(each, dict) for each in value.values())):
        if "kind" in value or not value:
            return json.dumps(value, ensure_ascii=False)
        lines = [f"{inner}{json.dumps(name)}: {_indented(each, inner)}" for name, each in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{margin}}}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        lines = [f"{inner}{json.dumps(each, ensure_ascii=False)}" for each in value]
        return "[\n" + ",\n".join(lines) + f"\n{margin}]"
    return json.dumps(value, ensure_ascii=False)
