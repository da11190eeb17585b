"""Settings that are read again: each change once, whole, and never a different store."""

from __future__ import annotations

from pathlib import Path

import pytest

from stationmaster.control.worker.settings_source import SettingsSource
from stationmaster.errors import ConfigInvalid
from tests.support.trusted_settings import write_trusted


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def source_of(home: Path, **environ: str) -> SettingsSource:
    return SettingsSource({"STATIONMASTER_HOME": str(home), **environ}, folder=home.parent)


def test_files_that_stay_as_they_are_change_nothing(home: Path) -> None:
    (home / "config.toml").write_text("provider = 'ssh'\n")
    source = source_of(home)
    before = source.settings
    assert not source.reread()
    (home / "config.toml").write_text("provider = 'ssh'  # as ever\n")
    assert source.reread()
    assert source.settings is before


def test_a_change_is_read_once_and_so_is_its_end(home: Path) -> None:
    source = source_of(home)
    (home / "config.toml").write_text("[billing]\nenabled = true\n")
    assert source.reread()
    assert source.settings.billing.enabled
    assert not source.reread()
    (home / "config.toml").unlink()
    assert source.reread()
    assert not source.settings.billing.enabled


def test_the_environment_of_the_process_stays_above_its_files(home: Path) -> None:
    source = source_of(home, STATIONMASTER_LIMITS__DAILY_SPEND="5")
    (home / "config.toml").write_text("[limits]\ndaily_spend = 7\nmax_rentals = 1\n")
    assert source.reread()
    assert (source.settings.limits.daily_spend, source.settings.limits.max_rentals) == (5_000_000, 1)


def test_files_that_hold_a_single_value_count_too(home: Path) -> None:
    (home / "token").write_text("first")
    write_trusted(home.parent / ".env", f"HF_TOKEN_FILE={home / 'token'}\n", home=home)
    source = source_of(home)
    (home / "token").write_text("second")
    assert source.reread()
    assert source.settings.hf_token is not None
    assert source.settings.hf_token.get_secret_value() == "second"
    write_trusted(home.parent / ".env", "HF_TOKEN=third\n", home=home)
    assert source.reread()
    assert source.settings.hf_token.get_secret_value() == "third"
    assert not source.reread()


def test_what_cannot_be_used_is_said_once_and_leaves_the_settings_as_they_were(home: Path) -> None:
    source = source_of(home)
    before = source.settings
    (home / "config.toml").write_text("[billing]\nenabeld = true\n")
    with pytest.raises(ConfigInvalid, match="enabeld"):
        source.reread()
    assert not source.reread()
    assert source.settings is before


def test_a_running_process_stays_with_its_store(home: Path) -> None:
    source = source_of(home)
    (home / "config.toml").write_text("database_url = 'postgresql://elsewhere/x'\n[billing]\nenabled = true\n")
    with pytest.raises(ConfigInvalid, match="database_url has changed") as caught:
        source.reread()
    assert "start it again" in str(caught.value.hint)
    assert "elsewhere" not in str(caught.value)
    assert source.settings.uses_sqlite


def test_a_file_that_is_being_written_is_read_when_it_is_whole(home: Path) -> None:
    """Its first half would be valid, and would switch off what it says in the second."""
    file = home / "config.toml"
    file.write_text("[limits]\nmax_rentals = 2\n[billing]\nenabled = true\n")
    rest = ["[billing]\n", "unit = 'points'\n", "enabled = true\n"]

    def write_on(_seconds: float) -> None:
        if rest:
            with file.open("a") as opened:
                opened.write(rest.pop(0))

    source = SettingsSource({"STATIONMASTER_HOME": str(home)}, folder=home.parent, sleep=write_on)
    file.write_text("[limits]\nmax_rentals = 3\n")
    assert source.reread()
    assert (source.settings.limits.max_rentals, source.settings.billing.enabled) == (3, True)


def test_a_changed_file_of_the_folder_takes_effect_once_it_is_trusted_again(home: Path) -> None:
    restricted = "STATIONMASTER_WORKER__SLOTS=3\n"
    path = write_trusted(home.parent / ".env", f"{restricted}HF_TOKEN=first\n", home=home)
    source = source_of(home)
    before = source.settings
    path.write_text(f"{restricted}HF_TOKEN=second\n")
    with pytest.raises(ConfigInvalid, match="has changed since you trusted it"):
        source.reread()
    assert source.settings is before
    assert not source.reread()
    write_trusted(path, f"{restricted}HF_TOKEN=second\n", home=home)
    assert source.reread()
    assert source.settings.hf_token is not None
    assert source.settings.hf_token.get_secret_value() == "second"
