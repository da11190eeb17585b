"""Config files of a plan: written at home, where they stay with the job, and sent with the other files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from stationmaster.errors import TransferFailed
from stationmaster.recipes.configs import ConfigFile
from stationmaster.remote.transfer import Sending


def written(configs: Iterable[ConfigFile], folder: Path) -> list[Sending]:
    """Each file below `folder`, as it is to arrive in the job's folder; writing it again changes nothing."""
    return [_written(config, folder / config.path) for config in configs]


def _written(config: ConfigFile, path: Path) -> Sending:
    content = config.text.encode()
    fresh = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(content)
        fresh.replace(path)
    except OSError as problem:
        raise TransferFailed(f"{path} cannot be written at home: {problem.strerror}") from problem
    return Sending(local=path, path=config.path, sha256=hashlib.sha256(content).hexdigest())
