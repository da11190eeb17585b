"""The files that settings are read from: in the home, and in the current folder if the person has trusted them."""

from __future__ import annotations

import io
import os
import stat
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stationmaster.errors import ConfigInvalid
from stationmaster.settings.addresses import checked_text, texts_in
from stationmaster.settings.trusted_files import TrustedFiles, read_settings_file

DOTENV = ".env"
_IN_HOME = "config"
_KINDS = ("toml", "yaml", "yml")
_SEE = "see docs/reference/settings.md"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS_ENTER = stat.S_IXGRP | stat.S_IXOTH


def config_candidates(home: Path, folder: Path) -> list[Path]:
    """Paths where a config file may be; the first that exists is read."""
    return [*(home / f"{_IN_HOME}.{kind}" for kind in _KINDS), *_candidates_in(folder)]


def folder_files(folder: Path) -> list[Path]:
    """The existing files in a folder from which settings are read there, if they are trusted."""
    return [path for path in (folder / DOTENV, *_candidates_in(folder)) if path.is_file()]


def is_folder_file(path: Path) -> bool:
    """Whether settings are read from a file of this name in the current folder."""
    return path in (path.parent / DOTENV, *_candidates_in(path.parent))


def our_variables(
    folder: Path, trusted: TrustedFiles, *, is_ours: Callable[[str], bool], is_free: Callable[[str], bool]
) -> dict[str, str]:
    """The variables in the folder's `.env` that are settings. Raises ConfigInvalid if some need trust and lack it."""
    path = folder / DOTENV
    if not path.is_file():
        return {}
    try:
        content = read_settings_file(path)
    except OSError as problem:
        raise _unreadable(path, problem) from None
    found = {name: value for name, value in parsed_dotenv(path, content).items() if is_ours(name)}
    written = parsed_dotenv(path, content, expanded=False)  # ${NAME} would send another of your secrets as this key
    if restricted := [name for name in found if not is_free(name) or found[name] != written.get(name)]:
        trusted.require(path, content, restricted)
    return found


def require_trust_in_dotenv(folder: Path, trusted: TrustedFiles, names: Sequence[str]) -> None:
    """Raises ConfigInvalid unless the folder's `.env`, which replaces these settings of the home, is trusted."""
    path = folder / DOTENV
    try:
        trusted.require(path, read_settings_file(path), names)
    except OSError as problem:
        raise _unreadable(path, problem) from None


def parsed_dotenv(path: Path, content: bytes, *, expanded: bool = True) -> dict[str, str]:
    """All variables in a `.env`; `expanded`: with `${NAME}` replaced by the environment's. Raises ConfigInvalid."""
    from dotenv import dotenv_values  # only if there is such a file

    try:
        text = content.decode()
    except UnicodeDecodeError as problem:
        raise _unreadable(path, problem) from None
    found = dotenv_values(stream=io.StringIO(text), interpolate=expanded)
    return {name: value for name, value in found.items() if value is not None}


def read_config_file(
    path: Path,
    *,
    home: Path,
    trusted: TrustedFiles,
    is_named: bool,
    needing_trust: Callable[[Mapping[str, Any]], Sequence[str]],
) -> dict[str, Any]:
    """The settings in a config file. Raises ConfigInvalid, also for one that other people may have written.

    A file that the person named needs no further trust.
    """
    try:
        content = read_settings_file(path)
        is_homes = path.parent == home and path.stem == _IN_HOME
        if is_homes and not is_named:
            _require_own(path)
        data = parsed_config(path, content)
        if not is_named and not is_homes and (restricted := needing_trust(data)):
            trusted.require(path, content, restricted)
    except OSError as problem:
        raise ConfigInvalid(f"{path}: {problem.strerror or problem}", hint=_SEE) from None
    return data


def parsed_config(path: Path, content: bytes) -> dict[str, Any]:
    """The settings in a config file as plain data. Raises ConfigInvalid."""
    try:
        text = content.decode()
        data = tomllib.loads(text) if path.suffix == ".toml" else _read_yaml(text)
    except ValueError as problem:
        raise ConfigInvalid(f"{path}: {' '.join(str(problem).split())}", hint=_SEE) from None
    except RecursionError:
        raise ConfigInvalid(f"{path}: the file is nested too deeply", hint=_SEE) from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigInvalid(f"{path}: must be a table of settings", hint=_SEE)
    refuse_invalid_text(data)
    return {name: value for name, value in data.items() if value is not None}  # a section with nothing in it


def refuse_invalid_text(data: Any) -> None:
    """Raises ConfigInvalid for text that could not be stored or printed."""
    for place, text in texts_in(data):
        try:
            checked_text(text)
        except ValueError as problem:
            raise ConfigInvalid(f"{place}: {problem}", hint=_SEE) from None


def _candidates_in(folder: Path) -> list[Path]:
    return [folder / f"stationmaster.{kind}" for kind in _KINDS]


def _require_own(path: Path) -> None:
    """Raises ConfigInvalid if others may have written the home's config file.

    In a home that others cannot enter, the mode of the file says nothing.
    """
    home, file = path.parent.stat(), path.stat()
    is_open = bool(home.st_mode & _OTHERS_ENTER) and bool((home.st_mode | file.st_mode) & _OTHERS_WRITE)
    if is_open or file.st_uid not in (os.geteuid(), 0, home.st_uid):
        raise ConfigInvalid(
            f"other users may change {path}", hint=f"check what it says, then run `chmod -R go-w {path.parent}`"
        )


def _unreadable(path: Path, problem: Exception) -> ConfigInvalid:
    return ConfigInvalid(f"{path} cannot be read: {problem}", hint="fix the file or remove it")


def _read_yaml(text: str) -> Any:
    from stationmaster.documents import read_yaml  # takes 15 ms to import, and few config files are YAML

    return read_yaml(text)
