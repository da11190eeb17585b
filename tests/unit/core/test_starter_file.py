"""The config file that `init` writes: valid, complete, and every setting with its meaning."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stationmaster.config import load_settings
from stationmaster.errors import ConfigInvalid, UserError
from stationmaster.settings import Settings
from stationmaster.settings.starter_file import is_secret, setting_fields, starter_text
from stationmaster.station.local.config_writer import ConfigWriter, parsed_assignment


def read(text: str, folder: Path) -> Settings:
    (folder / "config.toml").write_text(text)
    return load_settings({"STATIONMASTER_HOME": str(folder)}, folder=folder)


def test_without_a_choice_the_file_changes_nothing(tmp_path: Path) -> None:
    bare = load_settings({"STATIONMASTER_HOME": str(tmp_path)}, folder=tmp_path)
    assert read(starter_text({}), tmp_path) == bare


def test_what_is_commented_out_is_the_default(tmp_path: Path) -> None:
    """Removing the # before a setting that has a default changes nothing, either."""
    bare = load_settings({"STATIONMASTER_HOME": str(tmp_path)}, folder=tmp_path)
    text = re.sub(r'^# (\w+ = (?!"").+)$', r"\1", starter_text({}), flags=re.M)
    assert read(text, tmp_path) == bare


def test_every_setting_has_a_line_and_a_sentence_above_it() -> None:
    lines = starter_text({}).splitlines()
    names = [name for name in setting_fields() if name != "home"]
    found = [place for place, line in enumerate(lines) if re.match(r"# \w+ = ", line)]
    assert len(found) == len(names)
    assert all(re.match(r"# \S.*\S", lines[place - 1]) for place in found)


def test_chosen_values_are_read_back(tmp_path: Path) -> None:
    chosen = {
        "provider": "ssh",
        "limits.daily_spend": 20,
        "worker.lease": "30s",
        "vastai.api_key": 'a"b\\c',
        "vastai.preferred_gpus": ["A100"],
        "ssh.hosts": [{"address": "gpu-box", "user": "ann", "port": 2222}],
        "notify.mail.host": "smtp.example.org",
    }
    found = read(starter_text(chosen), tmp_path)
    assert (found.provider, found.limits.daily_spend, found.worker.lease) == ("ssh", 20_000_000, 30.0)
    assert found.vastai.api_key is not None
    assert found.vastai.api_key.get_secret_value() == 'a"b\\c'
    assert [(host.address, host.user, host.port) for host in found.ssh.hosts] == [("gpu-box", "ann", 2222)]
    assert (found.vastai.preferred_gpus, found.notify.mail.host) == (("A100",), "smtp.example.org")


@pytest.mark.parametrize("name", ["vastai.api_key", "database_url", "secrets", "notify.operators.slack_url"])
def test_secrets_are_not_taken_from_a_command_line(name: str) -> None:
    assert is_secret(name)
    with pytest.raises(UserError, match="is a secret"):
        parsed_assignment(f"{name}=planted")


def test_an_unknown_setting_names_the_nearest_one() -> None:
    with pytest.raises(UserError, match=r"worker\.slot is not a setting") as refused:
        parsed_assignment("worker.slot=3")
    assert refused.value.hint == "did you mean `worker.slots`?"
    with pytest.raises(UserError, match="the value is missing"):
        parsed_assignment("provider")


def test_settings_that_are_not_valid_replace_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    writer = ConfigWriter({}, home=home)
    writer.write({"provider": "ssh"}, force=False)
    before = writer.path.read_text()
    with pytest.raises(ConfigInvalid, match="provider: there is no provider nowhere") as refused:
        writer.write({"provider": "nowhere"}, force=True)
    assert "tmp" not in str(refused.value)  # not the place of the draft
    assert writer.path.read_text() == before
    assert [path.name for path in home.iterdir()] == ["config.toml"]


def test_a_replaced_file_is_kept_under_another_name_each_time(tmp_path: Path) -> None:
    writer = ConfigWriter({}, home=tmp_path)
    (tmp_path / "config.yaml").write_text("provider: ssh\n")
    with pytest.raises(UserError, match=r"config\.yaml exists"):
        writer.write({}, force=False)
    first = writer.write({"provider": "simulator"}, force=True)
    second, third = writer.write({}, force=True), writer.write({}, force=True)
    kept = [written.kept.name for written in (first, second, third) if written.kept is not None]
    assert kept == ["config.yaml.old", "config.toml.old", "config.toml.old-2"]
    assert (tmp_path / "config.yaml.old").read_text() == "provider: ssh\n"
    assert not (tmp_path / "config.yaml").exists()
    assert load_settings({"STATIONMASTER_HOME": str(tmp_path)}, folder=tmp_path).provider == "loopback"


def test_a_file_that_the_environment_names_is_written_there(tmp_path: Path) -> None:
    named = tmp_path / "mine.toml"
    written = ConfigWriter({"STATIONMASTER_CONFIG": str(named)}, home=tmp_path / "home").write({}, force=False)
    assert written.path == named
    assert named.exists()
