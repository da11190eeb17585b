"""Settings: the only reader of the environment.

Later wins: defaults, config file (TOML or YAML), `.env`, environment, command line. A setting `worker.slots` is
`STATIONMASTER_WORKER__SLOTS` in the environment; `…_FILE` gives a file that holds the value, `…_COMMAND` a command
that prints it. Nothing here is read at import: `load_settings` is called once, in `main()`.

Files in the current folder (`.env`, `stationmaster.toml`) are read only if the person has trusted them; see
`settings/trusted_files.py`.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import (
    BaseModel,
    ValidationError,
)

from stationmaster.errors import ConfigInvalid
from stationmaster.near_names import did_you_mean
from stationmaster.settings import LEAST_POLL_SECONDS, MonitoringSettings, Settings
from stationmaster.settings.config_files import (
    DOTENV,
    config_candidates,
    our_variables,
    parsed_config,
    parsed_dotenv,
    read_config_file,
    refuse_invalid_text,
    require_trust_in_dotenv,
)
from stationmaster.settings.problems import nearest_setting, problem_in_words
from stationmaster.settings.removed import REMOVED, removed_name, take_removed, warning_of
from stationmaster.settings.trusted_files import TrustedFiles
from stationmaster.settings.untrusted import CHOICES, KEYS

PREFIX = "STATIONMASTER_"
FREE = CHOICES | KEYS

SEED_NAMES: Mapping[str, str] = {
    "VASTAI_API_KEY": "vastai.api_key",
    "VASTAI_SSH_KEY_PATH": "vastai.ssh_key_path",
    "VASTAI_API_BASE_URL": "vastai.api_base_url",
    "VASTAI_PREFERRED_GPUS": "vastai.preferred_gpus",
    "VASTAI_MAX_BID_PER_HOUR": "vastai.max_bid_per_hour",
    "VASTAI_MIN_VRAM_GB": "vastai.min_vram_gb",
    "VASTAI_DEFAULT_DISK_GB": "vastai.default_disk_gb",
    "HF_TOKEN": "hf_token",
    "HF_READ_TOKEN": "hf_read_token",
    "DRIVER": "provider",
}
"""Names without our prefix that are read as well."""

_CONFIG = "STATIONMASTER_CONFIG"
_NOT_SETTINGS = {"STATIONMASTER_MACHINE", "STATIONMASTER_JOB_ROOT", _CONFIG}
_COMMAND_SECONDS = 30
_SEE = "see docs/reference/settings.md"


def secret_of(settings: Settings, name: str) -> str | None:
    """The value of a secret that a recipe declares by name; None if it is not set."""
    found = (settings.hf_read_token or settings.hf_token) if name == "HF_TOKEN" else None
    found = found or settings.secrets.get(name)
    return None if found is None else found.get_secret_value()


@cache
def warn_once(line: str) -> None:
    """Print a warning line on standard error once, no matter how often the settings are read."""
    print(f"warning: {line}", file=sys.stderr)


def load_settings(
    environ: Mapping[str, str],
    *,
    overrides: Mapping[str, Any] | None = None,
    folder: Path | None = None,
    removed: Mapping[str, str] = REMOVED,
    warn: Callable[[str], None] = warn_once,
    run: Callable[[str, str], str | None] | None = None,
) -> Settings:
    """Read the settings from all sources; `overrides` are dotted names from the command line. Raises ConfigInvalid.

    Settings in `removed` are ignored, with one warning. Settings that need trust, in a file of the `folder` without it,
    are refused, not ignored: others than the written ones could show another home, or rent on other terms. `run` is
    called with a setting's variable and the command of its `…_COMMAND`, and returns the value, or None to leave it out.

    >>> load_settings({"STATIONMASTER_HOME": "/tmp/h", "STATIONMASTER_WORKER__SLOTS": "3"}).worker.slots
    3
    """
    folder = folder or Path.cwd()
    run = run or _output_of
    ours = _from_environment(environ, removed, run)
    ours.update({name: value for name, value in (overrides or {}).items() if value is not None})
    home = _home(ours.get("home") or _default_home(), folder)
    trusted = TrustedFiles(home)  # of a home that no file in the folder can choose
    dotenv = our_variables(folder, trusted, is_ours=is_setting, is_free=_is_free)
    given = {**_from_environment(dotenv, removed, run), **ours}
    if given.get("home"):
        home = _home(given["home"], folder)
    named = {**dotenv, **environ}.get(_CONFIG)
    config_file = _find_config_file(named, home, folder)
    merged = {}
    if config_file is not None:
        merged = read_config_file(
            config_file, home=home, trusted=trusted, is_named=bool(named), needing_trust=_needing_trust
        )
    keys = sorted(name for variable in dotenv if (name := _name_of(variable)) in KEYS and name not in ours)
    if keys and (trusted.record.exists() or set(keys) & set(_names_in(merged))):
        require_trust_in_dotenv(folder, trusted, keys)
    gone = {*take_removed(merged, removed), *(name for name in removed if given.pop(name, None) is not None)}
    if gone:
        warn(warning_of(sorted(gone), removed))
    if isinstance(merged.get("monitoring"), dict):
        merged["monitoring"] = read_monitoring(merged["monitoring"])
    if "home" in merged and "home" not in given:
        home = _home(merged["home"], folder)
    for name, value in sorted(given.items(), key=lambda item: item[0].count(".")):  # a table before its entries
        _put(merged, name, value)
    merged["home"] = home
    return _validated(merged, source=config_file)


def settings_files(environ: Mapping[str, str], home: Path, *, folder: Path | None = None) -> list[Path]:
    """Every file that the settings of this home are read from, existing or not."""
    folder = folder or Path.cwd()
    trusted = TrustedFiles(home)
    try:
        variables = {**our_variables(folder, trusted, is_ours=is_setting, is_free=_is_free), **environ}
    except ConfigInvalid:
        variables = dict(environ)
    explicit = variables.get(_CONFIG)
    configs = [Path(explicit)] if explicit else config_candidates(home, folder)
    values = [Path(path) for name, path in variables.items() if path and _names_a_file(name)]
    return [trusted.record, folder / DOTENV, *configs, *values]


def home_of_person(environ: Mapping[str, str], *, home: Path | None = None, folder: Path | None = None) -> Path:
    """The home by option, environment or default, which no file in the folder can change. Raises ConfigInvalid."""
    return _home(home or _value(environ, f"{PREFIX}HOME", _output_of) or _default_home(), folder or Path.cwd())


def names_set_in(path: Path, content: bytes) -> list[str]:
    """The settings in a file of a folder, as they are written there. Raises ConfigInvalid."""
    if path.name == DOTENV:
        return [name for name in parsed_dotenv(path, content) if is_setting(name)]
    return sorted(_names_in(parsed_config(path, content)))


def is_setting(variable: str) -> bool:
    """Whether an environment variable gives a setting, itself or as `…_FILE` or `…_COMMAND`, or the config file.

    >>> is_setting("VASTAI_API_KEY_FILE"), is_setting("STATIONMASTER_MACHINE")
    (True, False)
    """
    name = variable.removesuffix("_FILE").removesuffix("_COMMAND")
    if variable == _CONFIG or name in SEED_NAMES:
        return True
    return variable.startswith(PREFIX) and variable not in _NOT_SETTINGS


def _is_free(variable: str) -> bool:
    """Whether a `.env` may set the variable before it is trusted: `…_FILE` and `…_COMMAND` never."""
    return _name_of(variable) in FREE


def _name_of(variable: str) -> str:
    return SEED_NAMES.get(variable) or _dotted(variable)


def _needing_trust(data: Mapping[str, Any]) -> list[str]:
    return sorted(name for name in _names_in(data) if name not in FREE)


def read_monitoring(block: Mapping[str, Any]) -> dict[str, Any]:
    """A job's monitoring block in snake_case and seconds; camelCase names are in milliseconds. Raises ConfigInvalid.

    >>> read_monitoring({"gracePeriod": 900000, "stallDetection": {"minSamples": 4}})
    {'grace_period': 900.0, 'stall_detection': {'min_samples': 4}}
    """
    ours: dict[str, Any] = {}
    for key, value in block.items():
        if key in ("gracePeriod", "pollInterval"):
            ours[_snake(key)] = _milliseconds(key, value)
        elif key == "stallDetection" and isinstance(value, Mapping):
            ours["stall_detection"] = {_snake(str(inner)): setting for inner, setting in value.items()}
        else:
            ours[key] = value
    try:
        checked = MonitoringSettings.model_validate(ours)
    except ValidationError as error:
        hint = nearest_setting(error, MonitoringSettings, below="monitoring") or _SEE
        raise ConfigInvalid(problem_in_words(error, below="monitoring"), hint=hint) from None
    if min(checked.poll_interval, checked.watch_interval) < LEAST_POLL_SECONDS:
        raise ConfigInvalid(f"monitoring: intervals must be at least {LEAST_POLL_SECONDS * 1000:g}ms", hint=_SEE)
    return ours


def monitoring_of(block: Mapping[str, Any], defaults: MonitoringSettings) -> MonitoringSettings:
    """The monitoring settings with a job's own block merged over them."""
    if not block:
        return defaults
    base = defaults.model_dump()
    for key, value in block.items():
        base[key] = {**base[key], **value} if isinstance(value, Mapping) else value
    return MonitoringSettings.model_validate(base)


def _home(value: Any, folder: Path) -> Path:
    try:
        return (folder / Path(str(value)).expanduser()).absolute()
    except RuntimeError:
        raise ConfigInvalid(
            f"home: {value} names an unknown user", hint="write the absolute path: --home /path/to/home"
        ) from None


def _default_home() -> Path:
    import platformdirs  # takes 10 ms to import, and is needed only without a home

    return Path(platformdirs.user_data_dir("stationmaster"))


def _from_environment(
    variables: Mapping[str, str], removed: Mapping[str, str], run: Callable[[str, str], str | None]
) -> dict[str, Any]:
    """Dotted names and values of all our variables; names with our prefix win over those without.

    A removed setting has its name in `removed`.
    """
    found: dict[str, Any] = {}
    known = _settings_by_variable()
    for variable, name in SEED_NAMES.items():
        if (value := _value(variables, variable, run)) is not None:
            found[name] = value
    for variable in _our_variables(variables):
        dotted = known.get(variable) or _name_in_table(variable) or removed_name(_dotted(variable), removed)
        if dotted is None:
            raise _unknown_variable(variable, known)
        if dotted in removed:
            found[dotted] = ""  # its value is never read
        elif (value := _value(variables, variable, run)) is not None:
            found[dotted] = value
    return found


def _our_variables(variables: Mapping[str, str]) -> Iterator[str]:
    for variable in variables:
        if variable.startswith(PREFIX) and variable not in _NOT_SETTINGS:
            for suffix in ("_FILE", "_COMMAND"):
                variable = variable.removesuffix(suffix)
            yield variable


def _value(variables: Mapping[str, str], variable: str, run: Callable[[str, str], str | None]) -> str | None:
    """A variable's value, else the content of `…_FILE`, else the output of `…_COMMAND`; empty counts as unset."""
    if variables.get(variable):
        return variables[variable]
    if path := variables.get(f"{variable}_FILE"):
        try:
            return Path(path).expanduser().read_text().strip()
        except OSError as problem:
            why = f"cannot read {path}: {problem.strerror}"
        except UnicodeDecodeError:
            why = f"{path} is not a text file"
        except RuntimeError:
            why = f"{path} names an unknown user"
        raise ConfigInvalid(f"{variable}_FILE: {why}", hint=f"name a readable text file, or set {variable} itself")
    if command := variables.get(f"{variable}_COMMAND"):
        return run(variable, command)
    return None


def _output_of(variable: str, command: str) -> str:
    try:
        done = subprocess.run(
            shlex.split(command), capture_output=True, text=True, timeout=_COMMAND_SECONDS, check=True
        )
    except (OSError, ValueError, subprocess.SubprocessError) as problem:
        raise ConfigInvalid(
            f"{variable}_COMMAND failed: {type(problem).__name__}",  # its output may contain the secret
            hint="run the command in a shell to see what it prints",
        ) from None
    return done.stdout.strip()


def _names_a_file(variable: str) -> bool:
    name = variable.removesuffix("_FILE")
    return name != variable and (name.startswith(PREFIX) or name in SEED_NAMES)


@cache
def _settings_by_variable() -> Mapping[str, str]:
    """The dotted name of every setting, by its environment variable."""
    return dict(_known_names())


def _known_names(model: type[BaseModel] = Settings, path: str = "") -> Iterator[tuple[str, str]]:
    """(environment variable, dotted name) of every setting."""
    for name, info in model.model_fields.items():
        dotted = f"{path}{name}"
        section = _section_of(info.annotation)
        if section is not None:
            yield from _known_names(section, f"{dotted}.")
        else:
            yield PREFIX + dotted.upper().replace(".", "__"), dotted


def _dotted(variable: str) -> str:
    return variable.removeprefix(PREFIX).lower().replace("__", ".")


def _name_in_table(variable: str) -> str | None:
    """The dotted name of a setting in a table whose keys users choose, as in …__ACCOUNTS__WORK__API_KEY."""
    for table, dotted, section in _tables():
        entry, _, field = variable.removeprefix(f"{table}__").lower().rpartition("__")
        if variable.startswith(f"{table}__") and entry and field in section.model_fields:
            return f"{dotted}.{entry}.{field}"
    return None


def _tables(model: type[BaseModel] = Settings, path: str = "") -> Iterator[tuple[str, str, type[BaseModel]]]:
    """(environment variable, dotted name, class of an entry) of every table of sections."""
    for name, info in model.model_fields.items():
        dotted = f"{path}{name}"
        if get_origin(info.annotation) is dict:
            kind = get_args(info.annotation)[1]
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield PREFIX + dotted.upper().replace(".", "__"), dotted, kind
        elif (section := _section_of(info.annotation)) is not None:
            yield from _tables(section, f"{dotted}.")


def _section_of(annotation: Any) -> type[BaseModel] | None:
    if get_origin(annotation) in (tuple, dict):
        return None  # a list of sections is one setting
    candidates = (annotation, *get_args(annotation))
    return next((kind for kind in candidates if isinstance(kind, type) and issubclass(kind, BaseModel)), None)


def _unknown_variable(variable: str, known: Mapping[str, str]) -> ConfigInvalid:
    return ConfigInvalid(f"{variable} is not a setting", hint=did_you_mean(variable, known) or _SEE)


def _find_config_file(explicit: str | None, home: Path, folder: Path) -> Path | None:
    if explicit:
        try:
            path = Path(explicit).expanduser()
            is_there = path.is_file()
        except (RuntimeError, ValueError):  # an unknown user, a zero byte
            path, is_there = Path(explicit), False
        if not is_there:
            raise ConfigInvalid(f"{_CONFIG} names {path}, which does not exist or is not a file", hint=_SEE)
        return path
    found = next((path for path in config_candidates(home, folder) if path.exists()), None)
    if found is not None and not found.is_file():
        raise ConfigInvalid(f"{found} is not a file", hint="settings are read from there: rename or move it")
    return found


def _names_in(data: Mapping[str, Any], model: type[BaseModel] | None = Settings, path: str = "") -> Iterator[str]:
    """The dotted names of the settings in a config file; a table whose keys users choose is one setting."""
    for name, value in data.items():
        field = model.model_fields.get(name) if model is not None else None
        section = None if field is None else _section_of(field.annotation)
        if section is not None and isinstance(value, dict):
            yield from _names_in(value, section, f"{path}{name}.")
        else:
            yield f"{path}{name}"


def _put(merged: dict[str, Any], dotted: str, value: Any) -> None:
    *sections, last = dotted.split(".")
    for section in sections:
        merged = merged.setdefault(section, {})
        if not isinstance(merged, dict):
            raise ConfigInvalid(f"{section}: must be a table of settings", hint=_SEE)
    merged[last] = _parsed(value)


def _parsed(value: Any) -> Any:
    """Parse a list or table in JSON; words with commas are split later, by the field's type."""
    if isinstance(value, str) and value[:1] in "[{":
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _validated(merged: dict[str, Any], *, source: Path | None) -> Settings:
    for section, name in (("vastai", "preferred_gpus"), (None, "recipes")):
        place = merged.get(section, {}) if section else merged
        if isinstance(place, dict) and isinstance(place.get(name), str):
            place[name] = tuple(word for word in place[name].split("," if section else os.pathsep) if word)
    refuse_invalid_text(merged)
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        where = f" (in {source} or the environment)" if source else ""
        raise ConfigInvalid(
            f"{problem_in_words(error)}{where}", hint=nearest_setting(error, Settings) or _SEE
        ) from None


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _milliseconds(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise ConfigInvalid(
            f"monitoring.{key} must be a number of milliseconds", hint="for example 900000, which is 15 minutes"
        )
    return value / 1000.0
