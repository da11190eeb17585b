"""A config file with settings that are gone still loads, with one warning line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stationmaster.config import load_settings, warn_once
from stationmaster.errors import ConfigInvalid
from stationmaster.settings import Settings
from stationmaster.settings.removed import REMOVED

GONE = {
    "worker.pace": "set worker.slots",
    "pigeons": "set notify.mail",
    "monitoring.patience": "set monitoring.grace_period",
}


def loaded(home: Path, warnings: list[str], **environ: str) -> Settings:
    return load_settings({"STATIONMASTER_HOME": str(home), **environ}, folder=home, removed=GONE, warn=warnings.append)


def test_a_file_with_settings_that_are_gone_loads_with_one_warning(tmp_path: Path) -> None:
    text = "[worker]\npace = 9\nslots = 3\n[pigeons]\nloft = 'north'\n[monitoring]\npatience = '5m'\n"
    (tmp_path / "config.toml").write_text(text)
    warnings: list[str] = []
    assert loaded(tmp_path, warnings).worker.slots == 3
    (warning,) = warnings
    assert "worker.pace is no longer a setting and is ignored (set worker.slots)" in warning
    assert "pigeons is no longer a setting" in warning
    assert "monitoring.patience is no longer a setting" in warning
    assert "\n" not in warning


def test_so_does_an_environment_with_them(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[worker]\npace = 9\n")
    warnings: list[str] = []
    environ = {"STATIONMASTER_PIGEONS__LOFT_FILE": "/nowhere", "STATIONMASTER_WORKER__PACE": "many"}
    loaded(tmp_path, warnings, **environ)
    assert warnings == [
        "pigeons is no longer a setting and is ignored (set notify.mail); "
        "worker.pace is no longer a setting and is ignored (set worker.slots)"
    ]


def test_without_any_of_them_nothing_is_said(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[worker]\nslots = 3\n")
    warnings: list[str] = []
    loaded(tmp_path, warnings)
    assert warnings == []


def test_a_name_that_never_was_a_setting_is_still_an_error(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[worker]\npacing = 9\n")
    with pytest.raises(ConfigInvalid, match=r"worker\.pacing is not a setting"):
        loaded(tmp_path, [])


def test_the_warning_is_said_once_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    warn_once.cache_clear()
    warn_once("worker.pace is no longer a setting")
    warn_once("worker.pace is no longer a setting")
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "warning: worker.pace is no longer a setting\n")


def test_what_is_gone_is_no_setting(tmp_path: Path) -> None:
    found = load_settings({"STATIONMASTER_HOME": str(tmp_path)}, folder=tmp_path)
    for name in REMOVED:
        section: Any = found
        *sections, last = name.split(".")
        for each in sections:
            section = getattr(section, each, None)
        assert not hasattr(section, last), name


@pytest.mark.parametrize("name", sorted(REMOVED))
def test_each_removed_setting_is_ignored_with_one_warning(tmp_path: Path, name: str) -> None:
    """In a file and in the environment alike, whatever its value was."""
    section, _, last = name.partition(".")
    (tmp_path / "config.toml").write_text(f"[{section}]\n{last} = 7\n")
    variable = f"STATIONMASTER_{section.upper()}__{last.upper()}"
    warnings: list[str] = []
    for environ in ({}, {variable: "7"}):
        load_settings({"STATIONMASTER_HOME": str(tmp_path), **environ}, folder=tmp_path, warn=warnings.append)
    assert warnings == [f"{name} is no longer a setting and is ignored ({REMOVED[name]})"] * 2
