"""`stationmaster keys`, as a person runs it: against a simulated Vast.ai and a real sshd."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from stationmaster.simulator.harness import simulator_thread
from tests.support.commands.command_line import answer_of, stationmaster
from tests.support.commands.json_documents import assert_documented
from tests.support.machines.own_hosts import environ_with_hosts, host_behind
from tests.support.servers.sshd import Sshd, running_sshd
from tests.support.vast.simulated_vast import API_KEY, Customer, quick_settings


@pytest.fixture
def vast_url(tmp_path: Path) -> Iterator[str]:
    with simulator_thread(quick_settings(tmp_path / "simulator")) as url:
        yield url


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@pytest.fixture
def person(tmp_path: Path) -> dict[str, str]:
    """Somebody with a home folder and nothing in it."""
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "STATIONMASTER_HOME": str(tmp_path / "home")}


def test_setup_makes_a_pair_that_only_its_owner_reads_and_registers_it_once(
    vast_url: str, person: dict[str, str], tmp_path: Path
) -> None:
    environ = {**person, "VASTAI_API_KEY": API_KEY, "VASTAI_API_BASE_URL": f"{vast_url}/api/v0"}
    first = answer_of("keys", "setup", "--json", environ=environ)
    second = answer_of("keys", "setup", "--json", environ=environ)
    private = tmp_path / ".ssh" / "vastai" / "vastai_ed25519"
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    derived = subprocess.run(["ssh-keygen", "-y", "-f", str(private)], capture_output=True, text=True, check=True)
    assert derived.stdout.split()[:2] == first["public_key"].split()[:2]
    assert (first["made"], second["made"]) == (True, False)
    assert second["public_key"] == first["public_key"]
    customer = Customer(vast_url)
    keys = customer.http.get("/api/v0/ssh/").json()
    customer.close()
    assert [key["key"].split()[:2] for key in keys] == [first["public_key"].split()[:2]]
    checked = answer_of("keys", "check", "--json", environ=environ)
    assert checked["providers"]["vastai"]["knows_ours"] is True
    assert_documented("keys setup", first)
    assert_documented("keys check", checked)


def test_check_names_every_cause_of_a_key_that_is_not_known(vast_url: str, person: dict[str, str]) -> None:
    made = answer_of("keys", "setup", "--json", environ=person)
    environ = {**person, "VASTAI_API_KEY": API_KEY, "VASTAI_API_BASE_URL": vast_url}
    checked = stationmaster("keys", "check", environ=environ)
    assert checked.returncode == 1
    assert "vastai has no keys" in checked.stderr
    for cause in ("stationmaster keys setup", "VASTAI_SSH_KEY_PATH", "cloud.vast.ai/manage-keys"):
        assert cause in checked.stderr
    assert made["private_key_path"] in checked.stderr


def test_a_public_key_of_another_pair_is_found(vast_url: str, person: dict[str, str], tmp_path: Path) -> None:
    environ = {**person, "VASTAI_API_KEY": API_KEY, "VASTAI_API_BASE_URL": vast_url}
    made = answer_of("keys", "setup", "--json", environ=person)
    other = answer_of("keys", "setup", "--json", environ={**person, "VASTAI_SSH_KEY_PATH": str(tmp_path / "other")})
    Path(f"{made['private_key_path']}.pub").write_text(other["public_key"])
    for command in ("check", "setup"):
        refused = stationmaster("keys", command, environ=environ)
        assert (refused.returncode, "is not the public key of" in refused.stderr) == (3, True)
        assert "hint: run `ssh-keygen -y -f" in refused.stderr
    doctor = stationmaster("doctor", "--offline", "--quiet", environ=environ)
    assert (doctor.returncode, "is not the public key of" in doctor.stdout) == (1, True)


def test_quiet_prints_the_path_of_the_key_and_only_problems(vast_url: str, person: dict[str, str]) -> None:
    environ = {**person, "VASTAI_API_KEY": API_KEY, "VASTAI_API_BASE_URL": vast_url}
    made = stationmaster("keys", "setup", "-q", environ=person).stdout
    assert made.endswith("vastai_ed25519\n")
    checked = stationmaster("keys", "check", "-q", environ=environ)
    assert (checked.returncode, checked.stdout) == (1, "")
    assert checked.stderr == "vastai has no keys: machines rented now would refuse the login\n"


def test_without_an_account_the_pair_is_made_and_the_next_step_is_named(person: dict[str, str]) -> None:
    done = stationmaster("keys", "setup", environ=person)
    assert done.returncode == 0
    assert "set VASTAI_API_KEY" in done.stdout


def test_check_without_a_pair_says_how_to_make_one(person: dict[str, str]) -> None:
    checked = stationmaster("keys", "check", environ=person)
    assert checked.returncode == 3
    assert "there is no SSH key" in checked.stderr
    assert "stationmaster keys setup" in checked.stderr


def test_a_host_key_is_pinned_only_when_a_person_says_so(sshd: Sshd, tmp_path: Path) -> None:
    environ = environ_with_hosts(tmp_path, host_behind(sshd, "box", tmp_path / "jobs"))
    fingerprint = subprocess.run(
        ["ssh-keygen", "-lf", str(sshd.folder / "host_key.pub")], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    asked = stationmaster("keys", "trust", "box", environ=environ)
    assert asked.returncode == 2
    assert fingerprint in asked.stdout
    assert not (tmp_path / "home" / "known_hosts").exists()
    pinned = stationmaster("keys", "trust", "box", "--yes", environ=environ)
    assert pinned.returncode == 0, pinned.stderr
    known = (tmp_path / "home" / "known_hosts").read_text()
    assert known == f"[127.0.0.1]:{sshd.port} {' '.join(sshd.host_key.split()[:2])}\n"
    again = stationmaster("keys", "trust", f"127.0.0.1:{sshd.port}", environ=environ)
    assert (again.returncode, "shows the pinned key" in again.stdout) == (0, True)
    assert_documented("keys trust", answer_of("keys", "trust", "box", "--json", environ=environ))


def test_a_host_of_the_ssh_configuration_is_asked_at_its_address(sshd: Sshd, tmp_path: Path) -> None:
    environ = environ_with_hosts(tmp_path, {"address": "gpu-box"})
    config = Path(environ["STATIONMASTER_SSH__CONFIG_PATH"])
    config.write_text(f"Host gpu-box other-box\n  HostName 127.0.0.1\n  Port {sshd.port}\n{config.read_text()}")
    for host in ("gpu-box", "other-box"):  # one of the settings, and one as typed
        pinned = answer_of("keys", "trust", host, "--yes", "--json", environ=environ)
        assert pinned["key"].split()[:2] == sshd.host_key.split()[:2]
    known = (tmp_path / "home" / "known_hosts").read_text().splitlines()
    assert [line.split()[0] for line in known] == ["gpu-box", "other-box"]


def test_a_changed_host_key_is_shown_beside_the_old_one(sshd: Sshd, tmp_path: Path) -> None:
    environ = environ_with_hosts(tmp_path, host_behind(sshd, "box", tmp_path / "jobs"))
    other = (sshd.folder / "client_key.pub").read_text()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "known_hosts").write_text(f"elsewhere {other}[127.0.0.1]:{sshd.port} {other}")
    changed = stationmaster("keys", "trust", "box", "--yes", environ=environ)
    assert "the pinned key is ssh-ed25519" in changed.stderr
    lines = (tmp_path / "home" / "known_hosts").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["elsewhere", f"[127.0.0.1]:{sshd.port}"]
    assert lines[1].split()[1:] == sshd.host_key.split()[:2]
