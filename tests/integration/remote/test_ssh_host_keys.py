"""Nothing is sent to a host whose key is not the pinned one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import asyncssh
import pytest

from stationmaster.errors import ConfigInvalid, HostKeyRefused, Unreachable
from stationmaster.model import LocalAccess, SshAccess
from stationmaster.remote.connect import connect
from stationmaster.remote.ssh import SshRemote
from stationmaster.remote.ssh_connection import SshTarget, fetch_host_key
from tests.support.asynchronous_tests import asynchronous, names_in
from tests.support.servers.sshd import Sshd


def another_key() -> str:
    return asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode().strip()


async def answers(remote: SshRemote) -> bool:
    try:
        return (await remote.run(["true"], timeout=150)).exit_status == 0
    finally:
        await remote.close()


@asynchronous
async def test_a_changed_host_key_is_refused_and_nothing_runs(sshd: Sshd, tmp_path: Path) -> None:
    before = accepted_logins(sshd)
    remote = SshRemote(sshd.settings(host_keys=(another_key(),)))
    with pytest.raises(HostKeyRefused, match="not the pinned one"):
        await remote.run(["touch", str(tmp_path / "ran")], input=b"secret", timeout=150)
    with pytest.raises(HostKeyRefused):
        await remote.push(sshd.client_key, str(tmp_path / "ran"))
    assert names_in(tmp_path) == []
    assert accepted_logins(sshd) == before
    await remote.close()


def accepted_logins(sshd: Sshd) -> int:
    return (sshd.folder / "sshd.log").read_text().count("Accepted publickey")


@asynchronous
async def test_any_one_of_several_pinned_keys_is_enough(sshd: Sshd) -> None:
    assert await answers(SshRemote(sshd.settings(host_keys=(another_key(), f"{sshd.host_key} root@machine"))))


@asynchronous
async def test_without_a_pinned_key_nothing_is_sent_unless_allowed(sshd: Sshd) -> None:
    with pytest.raises(HostKeyRefused, match="no host key"):
        await answers(SshRemote(sshd.settings(host_keys=())))
    assert await answers(SshRemote(sshd.settings(host_keys=(), allow_unverified=True)))


@asynchronous
async def test_a_pinned_key_that_cannot_be_read_is_refused(sshd: Sshd) -> None:
    with pytest.raises(HostKeyRefused, match="cannot be read"):
        await answers(SshRemote(sshd.settings(host_keys=("ssh-ed25519 nonsense",))))


@asynchronous
async def test_the_offered_key_can_be_asked_for_and_is_the_servers(sshd: Sshd) -> None:
    offered = await fetch_host_key(SshTarget(host="127.0.0.1", port=sshd.port), timeout=150)
    assert offered.split()[:2] == sshd.host_key.split()[:2]


@asynchronous
async def test_a_key_that_the_machine_does_not_know_is_unreachable_with_a_hint(sshd: Sshd, tmp_path: Path) -> None:
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(tmp_path / "other_key")
    with pytest.raises(Unreachable, match="refused the login") as caught:
        await answers(SshRemote(sshd.settings(key_path=tmp_path / "other_key")))
    assert "SSH key" in (caught.value.hint or "")


@asynchronous
async def test_a_missing_key_file_is_a_matter_of_settings(sshd: Sshd, tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="no_key"):
        await answers(SshRemote(sshd.settings(key_path=tmp_path / "no_key")))


def make_locked_key(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "a passphrase", "-f", str(path)], check=True)


@asynchronous
async def test_a_key_with_a_passphrase_is_a_matter_of_settings(sshd: Sshd, tmp_path: Path) -> None:
    make_locked_key(tmp_path / "locked")
    with pytest.raises(ConfigInvalid, match="locked"):
        await answers(SshRemote(sshd.settings(key_path=tmp_path / "locked")))


def write_config(folder: Path, sshd: Sshd, host_key: str) -> Path:
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{sshd.port} {host_key}\n")
    (folder / "config").write_text(
        f"Host workstation\n  HostName 127.0.0.1\n  Port {sshd.port}\n  IdentityFile {sshd.client_key}\n"
        f"  UserKnownHostsFile {folder / 'known_hosts'}\n  ForwardAgent yes\n"
    )
    return folder / "config"


@asynchronous
async def test_an_own_machine_is_found_through_the_ssh_config_and_known_hosts(sshd: Sshd, tmp_path: Path) -> None:
    changes = {"host": "workstation", "port": None, "key_path": None, "host_keys": (), "use_config": True}
    config = write_config(tmp_path, sshd, sshd.host_key)
    assert await answers(SshRemote(sshd.settings(**changes, config_path=config)))
    config = write_config(tmp_path, sshd, another_key())
    with pytest.raises(HostKeyRefused):
        await answers(SshRemote(sshd.settings(**changes, config_path=config)))


@asynchronous
async def test_the_agent_is_never_lent_to_the_machine(sshd: Sshd, tmp_path: Path) -> None:
    config = write_config(tmp_path, sshd, sshd.host_key)
    changes = {"host": "workstation", "port": None, "key_path": None, "host_keys": (), "use_config": True}
    remote = SshRemote(sshd.settings(**changes, config_path=config))
    done = await remote.run(["printenv", "SSH_AUTH_SOCK"], timeout=150)
    assert (done.exit_status, done.stdout) == (1, b"")
    await remote.close()


@asynchronous
async def test_an_access_becomes_the_machine_it_describes(sshd: Sshd, tmp_path: Path) -> None:
    settings = sshd.settings()
    over_ssh = SshAccess(
        host="127.0.0.1",
        port=sshd.port,
        user=settings.user or "",
        job_root=str(tmp_path),
        key_path=str(sshd.client_key),
        host_keys=(sshd.host_key,),
    )
    local = LocalAccess(root=str(tmp_path), job_root=str(tmp_path), environment=(("WHO", "this computer"),))
    for access, said in ((over_ssh, b""), (local, b"this computer")):
        remote = connect(access)
        assert (await remote.run(["sh", "-c", 'printf "%s" "$WHO"'], timeout=150)).stdout == said
        await remote.close()
