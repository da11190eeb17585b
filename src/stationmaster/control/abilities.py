"""What a worker can do by the settings it was started with: accounts, machines, recipes, and secrets to hand over.

A worker stays behind with the environment of the command that started it. A later command may know more than that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from stationmaster.settings import Settings

Abilities = Mapping[str, str]
"""By name, each with a digest that tells whether it is still the same."""


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
    return {name: hashlib.sha256(value.encode()).hexdigest()[:8] for name, value in found.items()}


def knows_more(ours: Abilities, theirs: Abilities) -> bool:
    """Whether ours can do all that theirs can, and something besides.

    >>> knows_more({"a": "1", "b": "2"}, {"a": "1"}), knows_more({"b": "1"}, {"a": "1"})
    (True, False)
    """
    return ours.keys() >= theirs.keys() and ours != theirs


def lacking(ours: Abilities, theirs: Abilities) -> list[str]:
    """What we can do and they cannot, or only with something else."""
    return sorted(name for name, digest in ours.items() if theirs.get(name) != digest)
