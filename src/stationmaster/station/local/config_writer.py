"""Writes a new config file: read back before it replaces anything, private, and the old one is kept."""

from __future__ import annotations

import shutil
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stationmaster.config import home_of_person, load_settings
from stationmaster.errors import ConfigInvalid, UserError
from stationmaster.files import write_atomically
from stationmaster.near_names import did_you_mean
from stationmaster.settings import Settings
from stationmaster.settings.config_files import config_candidates
from stationmaster.settings.private_home import make_private_home
from stationmaster.settings.starter_file import is_secret, setting_fields, starter_text

_CONFIG = "STATIONMASTER_CONFIG"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenConfig:
    path: Path
    kept: Path | None  # the file that it replaced


class ConfigWriter:
    """The config file of one home, or the one that the environment names."""

    def __init__(self, environ: Mapping[str, str], *, home: Path | None) -> None:
        """Raises ConfigInvalid."""
        self._environ = environ
        self.home = home_of_person(environ, home=home)
        named = environ.get(_CONFIG)
        self.path = Path(named).expanduser() if named else self.home / "config.toml"

    def existing(self) -> Path | None:
        """The file from which settings are read now."""
        candidates = [self.path, *(path for path in config_candidates(self.home, self.home) if path.stem == "config")]
        return next((path for path in candidates if path.exists()), None)

    def require_free(self, *, force: bool) -> None:
        """Raises UserError if there is a file already, unless it may be replaced."""
        found = self.existing()
        if found is not None and not force:
            raise UserError(
                f"{found} exists", hint="edit it, or pass --force to write a new one; the old one is kept beside it"
            )

    def settings_with(self, chosen: Mapping[str, Any]) -> Settings:
        """What the file would set, with nothing else. Raises ConfigInvalid."""
        with tempfile.TemporaryDirectory() as folder:  # only its owner may enter it
            draft = Path(folder) / "config.toml"
            write_atomically(draft, starter_text(chosen), mode=0o600)
            try:
                given = {_CONFIG: str(draft), "STATIONMASTER_HOME": str(self.home)}
                return load_settings(given, folder=Path(folder))
            except ConfigInvalid as problem:
                text = str(problem).replace(f" (in {draft} or the environment)", "")
                raise ConfigInvalid(text, hint=problem.hint) from None

    def write(self, chosen: Mapping[str, Any], *, force: bool) -> WrittenConfig:
        """Raises UserError if a file is in the way, ConfigInvalid if the settings are not valid together."""
        self.require_free(force=force)
        self.settings_with(chosen)
        make_private_home(self.home)
        found = self.existing()
        kept = None if found is None else _keep(found)
        write_atomically(self.path, starter_text(chosen), mode=0o600, durable=True)
        if found is not None and found != self.path:
            found.unlink()  # of another kind, such as config.yaml: its copy is kept
        return WrittenConfig(path=self.path, kept=kept)

    def next_steps(self, chosen: Mapping[str, Any]) -> list[str]:
        """The commands to run after these settings were written."""
        settings = self.settings_with(chosen)
        steps = ["stationmaster doctor"]
        has_key = settings.vastai.api_key is not None or any(
            name.startswith("VASTAI_API_KEY") for name in self._environ
        )
        if settings.provider == "vastai" and not has_key:
            steps.insert(0, "export VASTAI_API_KEY=…")
        if settings.provider == "vastai":
            steps.append("stationmaster keys setup")
        if settings.provider == "ssh":
            steps += [f"stationmaster keys trust {host.name}" for host in settings.ssh.hosts]
        return [*steps, "stationmaster demo", "stationmaster train"]


def parsed_assignment(text: str) -> tuple[str, Any]:
    """The setting and the value of NAME=VALUE. Raises UserError, also for secrets: others can see command lines.

    >>> parsed_assignment("limits.daily_spend=20"), parsed_assignment("provider=ssh")
    (('limits.daily_spend', 20), ('provider', 'ssh'))
    """
    name, equals, value = text.partition("=")
    name = name.strip()
    if not equals:
        raise UserError(f"--set {text}: the value is missing", hint="write NAME=VALUE, e.g. limits.daily_spend=20")
    known = setting_fields()
    if name not in known or name == "home":
        raise UserError(f"{name} is not a setting", hint=did_you_mean(name, known) or "see docs/reference/settings.md")
    if is_secret(name):
        raise UserError(
            f"{name} is a secret, which other users could see on a command line",
            hint="let `stationmaster init` ask for it at a terminal, or write it into the file afterwards",
        )
    return name, _value(value)


def _value(text: str) -> Any:
    try:
        found = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return found["value"] if found.keys() == {"value"} and isinstance(found["value"], _PLAIN) else text


_PLAIN = (bool, int, float, str, list, dict)


def _keep(path: Path) -> Path:
    """Copy the file beside itself, under a name from which no settings are read."""
    number = 1
    while (kept := path.with_name(f"{path.name}.old{'' if number == 1 else f'-{number}'}")).exists():
        number += 1
    write_atomically(kept, path.read_bytes(), mode=0o600)
    shutil.copystat(path, kept)
    kept.chmod(0o600)
    return kept
