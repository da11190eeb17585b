from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.remote.base import Span
from stationmaster.remote.host import batched
from stationmaster.remote.rsync import bytes_moved, split_tail
from stationmaster.remote.ssh_client import config_text, ssh_client
from stationmaster.remote.ssh_connection import SshTarget
from tests.support.capabilities import require

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPq3Y2U8h3cbbXhHFTlUySPYcXsVvEq4Y7PpNqyJjQxS"


@pytest.mark.parametrize(
    ("spans", "holes", "tail"),
    [
        ([], [], None),
        ([Span(0, 100)], [], Span(0, 100)),
        ([Span(10, 5)], [Span(10, 5)], None),
        ([Span(10, 5), Span(90, 10)], [Span(10, 5)], Span(90, 10)),
    ],
)
def test_only_what_lacks_at_the_end_can_be_appended(spans: list[Span], holes: list[Span], tail: Span | None) -> None:
    assert split_tail(spans, 100) == (holes, tail)


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        (b"", None),
        (b"\r    1000  10%   20.01MB/s    0:00:00  \r    2000  20%", 2000),
        (b"\r    1000  10%   20.01MB/s    0:00:00  \r    20", 1000),
        (b"building file list ...\n", None),
    ],
)
def test_only_a_whole_number_counts_as_progress(text: bytes, moved: int | None) -> None:
    assert bytes_moved(text) == moved


def effective(settings: SshTarget) -> dict[str, list[str]]:
    """What the real ssh makes of the configuration that it is given."""
    require("sshd")
    with ssh_client(settings, KEY) as client:
        assert client is not None
        said = subprocess.run([*client.argv, "-G", client.host], capture_output=True, text=True, check=True).stdout
        assert client.config.parent.stat().st_mode & 0o077 == 0
        assert Path(client.config.parent, "known_hosts").read_text().endswith(f"{KEY}\n")
    found: dict[str, list[str]] = {}
    for line in said.splitlines():
        name, _, value = line.partition(" ")
        found.setdefault(name, []).append(value)
    return found


def test_ssh_is_told_the_same_door_and_key_as_our_own_connection(tmp_path: Path) -> None:
    key = tmp_path / "a key with spaces and 100%"
    said = effective(SshTarget(host="10.9.8.7", port=2201, user="trainer", key_path=key))
    assert said["hostname"] == ["10.9.8.7"]
    assert said["port"] == ["2201"]
    assert said["user"] == ["trainer"]
    # ssh prints the word before it expands the doubled percent sign
    assert [each.replace("%%", "%") for each in said["identityfile"]] == [str(key)]
    assert said["identitiesonly"] == ["yes"]
    assert said["identityagent"] == ["none"]


def test_nothing_of_the_persons_configuration_loosens_what_protects_the_transfer(tmp_path: Path) -> None:
    persons = tmp_path / "config"
    persons.write_text(
        "Host box\n  HostName 10.9.8.7\n  Port 2201\n  User somebody\n"
        "Host *\n  ForwardAgent yes\n  ForwardX11 yes\n  SendEnv *\n  StrictHostKeyChecking no\n"
        "  UserKnownHostsFile /dev/null\n  ControlMaster auto\n  ControlPath /tmp/%C\n  PermitLocalCommand yes\n"
        "  LocalCommand touch /tmp/never\n  RequestTTY force\n  LocalForward 5000 127.0.0.1:5000\n"
    )
    said = effective(SshTarget(host="box", use_config=True, config_path=persons))
    assert (said["hostname"], said["port"], said["user"]) == (["10.9.8.7"], ["2201"], ["somebody"])
    assert said["forwardagent"] == said["forwardx11"] == said["permitlocalcommand"] == ["no"]
    assert said["stricthostkeychecking"] == ["true"]
    assert said["controlmaster"] == ["false"]
    assert said["requesttty"] == ["false"]
    assert said["clearallforwardings"] == ["yes"]
    assert "/dev/null" not in said["userknownhostsfile"]
    assert "sendenv" not in said


def test_the_persons_configuration_is_not_read_for_a_machine_that_it_does_not_name(tmp_path: Path) -> None:
    text = config_text(SshTarget(host="box", config_path=tmp_path / "config"), tmp_path / "known_hosts")
    assert "Include" not in text


def test_the_folder_of_the_configuration_is_gone_afterwards() -> None:
    if shutil.which("ssh") is None:
        require("sshd")
    with ssh_client(SshTarget(host="box"), KEY) as client:
        assert client is not None
        folder = client.config.parent
    assert not folder.exists()


@given(paths=st.lists(st.text(min_size=1, max_size=20)), most_bytes=st.integers(min_value=1, max_value=60))
def test_paths_are_asked_for_in_commands_that_fit_and_none_is_forgotten(paths: list[str], most_bytes: int) -> None:
    groups = list(batched(paths, most_bytes=most_bytes))
    assert [path for group in groups for path in group] == paths
    for group in groups:
        assert len(group) == 1 or len(shlex.join(group).encode()) < most_bytes
