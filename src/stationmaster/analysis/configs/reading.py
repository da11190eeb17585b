"""Reads a trainer's config file, whichever trainer it is for."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

from stationmaster.analysis.configs.ai_toolkit import AiToolkitConfig
from stationmaster.analysis.configs.base import TrainerConfig
from stationmaster.analysis.configs.kohya import KohyaConfig
from stationmaster.documents import read_yaml
from stationmaster.errors import UserError

_HINT = "give the config that the trainer used: ai-toolkit's YAML or JSON, or kohya's TOML"
_MOST_CHARACTERS = 5_000_000


def read_config(text: str, *, name: str) -> TrainerConfig | None:
    """Return the config in a file's text; None if no known trainer reads it. Raises UserError if it is broken."""
    if len(text) > _MOST_CHARACTERS:
        raise UserError(f"{name} is too long for a config", hint=_HINT)
    suffix = name.casefold().rpartition(".")[2]
    if suffix == "toml":
        return config_of(_read_toml(text, name))
    if suffix in ("yaml", "yml", "json"):
        return config_of(_read_yaml(text, name))
    for read in (_read_yaml, _read_toml):
        try:
            return config_of(read(text, name))
        except UserError:  # of another kind
            continue
    return None


def config_of(data: Any) -> TrainerConfig | None:
    """Return the config that these values are; None if they are of no trainer that is known."""
    if not isinstance(data, Mapping):
        return None
    inner = data.get("config")
    processes = inner.get("process") if isinstance(inner, Mapping) else None
    if isinstance(processes, list) and processes and isinstance(processes[0], Mapping):
        return AiToolkitConfig(process=processes[0])
    options = _flat(data)
    known = ("pretrained_model_name_or_path", "network_module", "max_train_steps", "train_batch_size", "train_data_dir")
    return KohyaConfig(options=options) if any(key in options for key in known) else None


def _read_toml(text: str, name: str) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise UserError(f"{name} is not valid TOML: {problem}", hint=_HINT) from problem


def _read_yaml(text: str, name: str) -> Any:
    """JSON is YAML too."""
    try:
        return read_yaml(text)
    except (ValueError, RecursionError) as problem:
        raise UserError(f"{name} cannot be read: {problem}", hint=_HINT) from problem


def _flat(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of all sections together: kohya ignores which section a key is in."""
    flat: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, Mapping):
            flat.update(_flat(value))
        else:
            flat[key] = value
    return flat
