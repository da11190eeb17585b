"""What a worker can do (accounts, machines, recipes, secrets) and which other settings it has, for comparison.

A background worker keeps the environment of the command that started it. A later command may have more, or other
settings. Both are compared by name and digest, so that no value is written anywhere.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr

from stationmaster.settings import Settings

Abilities = Mapping[str, str]
"""By name, each with a digest that changes with its value."""
Digests = Mapping[str, str]
"""Digests of every other setting that is not its default, by name."""

_NOT_A_WORKERS = {"home", "provider", "log_level", "serve.host", "serve.port"}
_ABILITIES = {"vastai.api_key", "vastai.accounts", "ssh.hosts", "secrets", "hf_token", "bucket.secret_key", "recipes"}
_MONEY = ("billing.", "limits.daily_spend")


def abilities_of(settings: Settings) -> dict[str, str]:
    """
    >>> from stationmaster.config import load_settings
    >>> list(abilities_of(load_settings({"STATIONMASTER_HOME": "/tmp/h", "HF_TOKEN": "hf_x"})))
    ['secret HF_TOKEN']
    """
    found = {f"account {name}": key for name, key in settings.vastai.keys_by_account().items()}
    found |= {f"machine {host.name or host.address}": host.model_dump_json() for host in settings.ssh.hosts}
    found |= {f"secret {name}": secret.get_secret_value() for name, secret in settings.secrets.items()}
    for name, token in (("HF_TOKEN", settings.hf_token), ("HF_READ_TOKEN", settings.hf_read_token)):
        if token is not None:
            found[f"secret {name}"] = token.get_secret_value()
    if settings.bucket.secret_key is not None:
        found["bucket"] = settings.bucket.secret_key.get_secret_value()
    found |= {f"recipes {folder}": "" for folder in settings.recipes}
    return {name: _digest(value) for name, value in found.items()}


def digests_of(settings: Settings) -> dict[str, str]:
    """
    >>> from stationmaster.config import load_settings
    >>> list(digests_of(load_settings({"STATIONMASTER_HOME": "/tmp/h", "STATIONMASTER_BILLING__ENABLED": "1"})))
    ['billing.enabled']
    """
    usual = dict(_leaves(Settings(home=settings.home)))
    left_out = _NOT_A_WORKERS | _ABILITIES
    return {
        name: _digest(json.dumps(value, sort_keys=True, default=_plain))
        for name, value in _leaves(settings)
        if name not in left_out and value != usual[name]
    }


def differing(ours: Digests, theirs: Digests) -> list[str]:
    """The settings that are not the same here and there.

    >>> differing({"a": "1", "b": "2"}, {"b": "3", "c": "4"})
    ['a', 'b', 'c']
    """
    return sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))


def of_money(names: list[str]) -> list[str]:
    """Those by which it is decided who pays for a job, and whether it may begin.

    >>> of_money(["billing.enabled", "limits.ready"])
    ['billing.enabled']
    """
    return [name for name in names if name.startswith(_MONEY)]


def knows_more(ours: Abilities, theirs: Abilities) -> bool:
    """Whether ours can do all that theirs can, and something besides.

    >>> knows_more({"a": "1", "b": "2"}, {"a": "1"}), knows_more({"b": "1"}, {"a": "1"})
    (True, False)
    """
    return ours.keys() >= theirs.keys() and ours != theirs


def lacking(ours: Abilities, theirs: Abilities) -> list[str]:
    """What we can do and they cannot, or only with something else."""
    return sorted(name for name, digest in ours.items() if theirs.get(name) != digest)


def _leaves(section: BaseModel, path: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted name, value) of every setting."""
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield from _leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def _plain(value: Any) -> Any:
    match value:
        case SecretStr():
            return value.get_secret_value()
        case BaseModel():
            return {name: getattr(value, name) for name in type(value).model_fields}
        case Path():
            return str(value)
        case _:
            return repr(value)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
