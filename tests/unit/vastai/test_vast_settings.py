"""Settings for Vast.ai: named accounts, and which machines are wanted."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from stationmaster.config import load_settings
from stationmaster.errors import ConfigInvalid
from stationmaster.settings import Settings
from tests.support.trusted_settings import write_trusted

_WORK = "STATIONMASTER_VASTAI__ACCOUNTS__WORK__API_KEY"


def settings(folder: Path, environ: dict[str, str]) -> Settings:
    return load_settings({"STATIONMASTER_HOME": str(folder / "home"), **environ}, folder=folder)


def refused(folder: Path, environ: dict[str, str]) -> ConfigInvalid:
    with pytest.raises(ConfigInvalid) as caught:
        settings(folder, environ)
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_named_account_s_key_comes_from_the_environment_a_file_or_a_command(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from-a-file\n")
    command = f"{sys.executable} -c 'print(\"from-a-command\")'"
    for environ, key in (
        ({_WORK: "plain"}, "plain"),
        ({f"{_WORK}_FILE": str(tmp_path / "key")}, "from-a-file"),
        ({f"{_WORK}_COMMAND": command}, "from-a-command"),
        ({"STATIONMASTER_VASTAI__ACCOUNTS": json.dumps({"work": {"api_key": "as-a-table"}})}, "as-a-table"),
    ):
        assert settings(tmp_path, environ).vastai.keys_by_account() == {"work": key}


def test_an_account_in_the_environment_joins_those_of_the_file(tmp_path: Path) -> None:
    write_trusted(
        tmp_path / "stationmaster.toml", '[vastai.accounts.home-lab]\napi_key = "one"\n', home=tmp_path / "home"
    )
    found = settings(tmp_path, {_WORK: "key-two", "VASTAI_API_KEY": "three"}).vastai.keys_by_account()
    assert found == {"default": "three", "home-lab": "one", "work": "key-two"}
    assert "key-two" not in repr(settings(tmp_path, {_WORK: "key-two"}))


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"VASTAI_API_KEY": "same-secret", _WORK: "same-secret"}, "the accounts default and work have the same key"),
        ({"STATIONMASTER_VASTAI__ACCOUNTS__DEFAULT__API_KEY": "x"}, "default is the account of vastai.api_key"),
        ({"STATIONMASTER_VASTAI__ACCOUNTS": '{"a:b": {"api_key": "x"}}'}, "'a:b' is not a valid account name"),
        (
            {"STATIONMASTER_VASTAI__ACCOUNTS__WORK__KEY": "x"},
            "STATIONMASTER_VASTAI__ACCOUNTS__WORK__KEY is not a setting",
        ),
    ],
)
def test_accounts_that_make_no_sense_are_refused_in_one_line(
    tmp_path: Path, environ: dict[str, str], said: str
) -> None:
    problem = str(refused(tmp_path, environ))
    assert said in problem
    assert "same-secret" not in problem


def test_which_machines_are_wanted_is_read_as_words(tmp_path: Path) -> None:
    environ = {
        "STATIONMASTER_VASTAI__PREFERRED_REGIONS": "SE, NO,Quebec",
        "STATIONMASTER_VASTAI__BLOCKED_REGIONS": "[]",
        "STATIONMASTER_VASTAI__BLOCKED_MACHINES": "[12345, 678]",
        "STATIONMASTER_VASTAI__DATACENTER_ONLY": "true",
        "STATIONMASTER_VASTAI__JOB_ROOT": "/opt/stationthis/jobs/",
    }
    vast = settings(tmp_path, environ).vastai
    assert (vast.preferred_regions, vast.blocked_regions) == (("SE", "NO", "Quebec"), ())
    assert (vast.blocked_machines, vast.datacenter_only) == (("12345", "678"), True)
    assert vast.job_root == "/opt/stationthis/jobs"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("JOB_ROOT", "jobs"),
        ("JOB_ROOT", "/"),
        ("JOB_ROOT", "/opt/../etc"),
        ("JOB_ROOT", "/opt/my jobs"),
        ("MIN_RELIABILITY", "95"),
        ("MIN_CUDA", "new"),
        ("DATACENTER_ONLY", "perhaps"),
    ],
)
def test_a_wish_about_machines_that_makes_no_sense_is_refused(tmp_path: Path, name: str, value: str) -> None:
    assert f"vastai.{name.lower()}" in str(refused(tmp_path, {f"STATIONMASTER_VASTAI__{name}": value}))


def test_a_job_may_run_under_a_named_account_unless_it_says_otherwise(tmp_path: Path) -> None:
    assert settings(tmp_path, {"DRIVER": "vastai:work", _WORK: "k"}).provider == "vastai:work"
