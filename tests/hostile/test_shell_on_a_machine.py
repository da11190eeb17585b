"""`stationmaster ssh`: a shell on the job's own machine and on no other, and never with the person's agent."""

from __future__ import annotations

import getpass
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from stationmaster.control.worker.background import WorkerLock
from stationmaster.model import RentedMachine, SshAccess
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from stationmaster.store.writes import Write
from tests.support.commands.command_line import PATIENCE_SECONDS, command_server, stationmaster
from tests.support.jobs.spine_values import spec
from tests.support.servers.sshd import Sshd, running_sshd
from tests.support.waiting import until

_TYPED = 'echo "arrived at $SSH_CONNECTION"; echo "agent=[$SSH_AUTH_SOCK]"\n'
_CARELESS = """\
Host box
  HostName 127.0.0.1
  Port {port}
  User {user}
  IdentityFile {key}
Host *
  ForwardAgent yes
  ForwardX11 yes
  SendEnv *
  StrictHostKeyChecking no
  UserKnownHostsFile {known_hosts}
"""


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@pytest.fixture(scope="module")
def other_key(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("other") / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path.with_suffix(".pub").read_text().strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody with an agent and an SSH configuration that trusts everybody, and a job that has a machine."""

    folder: Path
    environ: dict[str, str]
    store: Store
    sshd: Sshd

    @property
    def known_hosts(self) -> Path:
        return self.folder / "person_known_hosts"

    def rented(self, **fields: Any) -> SshAccess:
        known = {"host": "127.0.0.1", "port": self.sshd.port, "user": getpass.getuser(), "job_root": "/jobs"}
        return SshAccess(**{**known, "key_path": str(self.sshd.client_key), **fields})

    def own(self, **fields: Any) -> SshAccess:
        """As the settings name it: everything but the name is in the person's configuration."""
        return SshAccess(**{"host": "box", "port": 0, "user": "", "job_root": "/jobs", "use_config": True, **fields})

    def shell(self, access: SshAccess) -> subprocess.CompletedProcess[str]:
        """What comes of typing into the shell on a machine that is reached like this."""
        self.store.jobs.submit(spec("mine"))
        (lease,) = self.store.leases.claim("a worker", limit=1, seconds=600)
        self.store.leases.record(lease, Write(job=replace(lease.job, machine=RentedMachine(access=access))))
        command = [command_server().own_command, "ssh", "mine"]
        streams: dict[str, Any] = {"input": _TYPED, "capture_output": True, "text": True}
        return subprocess.run(command, env=self.environ, cwd=self.folder, timeout=PATIENCE_SECONDS, **streams)


@pytest.fixture
def person(sshd: Sshd, tmp_path: Path) -> Iterator[Person]:
    with ExitStack() as things:
        agent = tmp_path / "agent"
        running = things.enter_context(
            subprocess.Popen(["ssh-agent", "-D", "-a", str(agent)], stdout=subprocess.DEVNULL)
        )
        things.callback(running.terminate)
        until(agent.exists, "the agent")
        config = tmp_path / "ssh_config"
        known_hosts = tmp_path / "person_known_hosts"
        words = {"port": sshd.port, "user": getpass.getuser(), "key": sshd.client_key, "known_hosts": known_hosts}
        config.write_text(_CARELESS.format(**words))
        home = tmp_path / "home"
        home.mkdir()
        lock = WorkerLock(home)  # the job's worker, as far as anybody can see
        assert lock.take(log=home / "worker.log")
        things.callback(lock.release)
        store = things.enter_context(closing(Store(Database(f"sqlite:///{home}/stationmaster.db"))))
        environ = {
            "PATH": f"{_with_config_as_the_usual(tmp_path, config)}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "STATIONMASTER_HOME": str(home),
            "STATIONMASTER_SSH__CONFIG_PATH": str(config),
            "SSH_AUTH_SOCK": str(agent),
        }
        forwarded = subprocess.run(
            ["ssh", "box"], env=environ, input=_TYPED, capture_output=True, text=True, check=True
        )
        assert "agent=[]" not in forwarded.stdout, "this configuration would forward the agent"
        known_hosts.unlink()
        yield Person(folder=tmp_path, environ=environ, store=store, sshd=sshd)


def _with_config_as_the_usual(folder: Path, config: Path) -> Path:
    """A folder with an `ssh` whose usual configuration this is; the real one knows only that of the account."""
    program = shutil.which("ssh")
    wrapper = folder / "bin" / "ssh"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nexec {program} -F {config} "$@"\n')
    wrapper.chmod(0o755)
    return wrapper.parent


def assert_arrived_alone(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    assert "arrived at 127.0.0.1" in done.stdout
    assert "agent=[]" in done.stdout


def test_a_shell_on_a_rented_machine_has_no_agent(person: Person) -> None:
    assert_arrived_alone(person.shell(person.rented(host_keys=(person.sshd.host_key,))))
    assert not person.known_hosts.exists(), "nothing about the machine is remembered elsewhere"


def test_the_files_of_a_shell_are_its_owner_s_alone(person: Person) -> None:
    person.shell(person.rented(host_keys=(person.sshd.host_key,)))
    folder = person.folder / "home" / "ssh" / "mine"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {
        "config": 0o600,
        "known_hosts": 0o600,
    }


@pytest.mark.parametrize("own", [False, True], ids=["rented", "own"])
def test_a_machine_that_shows_another_host_key_is_refused(own: bool, person: Person, other_key: str) -> None:
    person.known_hosts.write_text(f"[127.0.0.1]:{person.sshd.port} {person.sshd.host_key}\n")
    access = (person.own if own else person.rented)(host_keys=(other_key,))
    done = person.shell(access)
    assert done.returncode == 255
    assert "Host key verification failed" in done.stderr
    assert done.stdout == ""


def test_any_of_several_pinned_keys_will_do(person: Person, other_key: str) -> None:
    assert_arrived_alone(person.shell(person.rented(host_keys=(other_key, person.sshd.host_key))))


def test_a_machine_whose_key_could_not_be_verified_is_entered_with_a_warning_and_without_the_agent(
    person: Person,
) -> None:
    done = person.shell(person.rented(unverified=True))
    assert_arrived_alone(done)
    assert done.stderr.startswith("warning: the host key of 127.0.0.1 could not be verified")
    assert not person.known_hosts.exists()


def test_a_machine_without_any_word_on_its_keys_is_refused(person: Person) -> None:
    done = person.shell(person.rented())
    assert done.returncode == 30
    assert "no host key of 127.0.0.1 is pinned" in done.stderr


@pytest.mark.parametrize("pinned", [False, True], ids=["in known_hosts", "pinned"])
def test_an_own_machine_is_found_by_the_person_s_configuration_and_gets_no_agent(pinned: bool, person: Person) -> None:
    person.known_hosts.write_text(f"[127.0.0.1]:{person.sshd.port} {person.sshd.host_key}\n")
    assert_arrived_alone(person.shell(person.own(host_keys=(person.sshd.host_key,) if pinned else ())))


def test_without_an_ssh_client_a_person_is_told_to_install_one(person: Person) -> None:
    person.shell(person.rented(host_keys=(person.sshd.host_key,)))
    done = stationmaster("ssh", "mine", environ={**person.environ, "PATH": str(person.folder / "nothing")})
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, "hint: install the OpenSSH client")
