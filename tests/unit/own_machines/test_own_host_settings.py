"""Own machines in the settings, and the script that runs on them."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest

from stationmaster.config import load_settings
from stationmaster.errors import ConfigInvalid
from stationmaster.providers import own_machine_script
from stationmaster.settings import SshSettings
from tests.support.trusted_settings import write_trusted


def ssh_of(folder: Path, hosts: object) -> SshSettings:
    variables = {"STATIONMASTER_HOME": str(folder), "STATIONMASTER_SSH__HOSTS": json.dumps(hosts)}
    return load_settings(variables, folder=folder).ssh


def test_an_address_alone_is_a_machine_with_one_slot(tmp_path: Path) -> None:
    (host,) = ssh_of(tmp_path, [{"address": "gpu.example.com"}]).hosts
    assert (host.name, host.slots, host.gpus, host.port, host.job_root) == ("gpu.example.com", 1, 0, None, None)


def test_hosts_can_be_written_in_a_file(tmp_path: Path) -> None:
    write_trusted(
        tmp_path / "stationmaster.toml",
        '[[ssh.hosts]]\nname = "box"\naddress = "10.0.0.7"\nslots = 2\nprice_per_hour = "0.35"\n',
        home=tmp_path / "home",
    )
    (host,) = load_settings({"STATIONMASTER_HOME": str(tmp_path / "home")}, folder=tmp_path).ssh.hosts
    assert (host.name, host.slots, host.price_per_hour) == ("box", 2, 350_000)


def test_an_address_with_colons_gets_a_name_that_can_be_part_of_an_id(tmp_path: Path) -> None:
    (host,) = ssh_of(tmp_path, [{"address": "fe80::1"}]).hosts
    assert host.name == "fe80--1"


@pytest.mark.parametrize(
    ("hosts", "place"),
    [
        ([{"name": "box"}], "ssh.hosts.0.address"),
        ([{"address": "a"}, {"address": "a"}], "two machines are named a"),
        ([{"address": "a", "slots": 0}], "ssh.hosts.0.slots"),
        ([{"address": "a", "port": 70000}], "ssh.hosts.0.port"),
        ([{"address": "a", "job_root": "jobs"}], "must begin with / or ~/"),
        ([{"address": "a", "name": "a/b"}], "ssh.hosts.0.name"),
        ([{"address": "a", "memory": 3}], "ssh.hosts.0.memory"),
        ({"address": "a"}, "ssh.hosts"),
    ],
)
def test_a_wrong_host_is_one_clear_line(tmp_path: Path, hosts: object, place: str) -> None:
    with pytest.raises(ConfigInvalid, match=place.replace(".", r"\.")) as refused:
        ssh_of(tmp_path, hosts)
    assert "\n" not in str(refused.value)


def test_the_script_needs_no_newer_python_than_is_promised_and_nothing_but_its_library() -> None:
    tree = ast.parse(Path(own_machine_script.__file__).read_text(), feature_version=(3, 8))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported <= sys.stdlib_module_names | {"__future__"}
