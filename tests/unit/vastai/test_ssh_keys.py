from __future__ import annotations

import signal
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import asyncssh
import pytest

from stationmaster.errors import ConfigInvalid
from stationmaster.providers.vastai.ssh_keys import check, ensure_pair, read_pair, register
from tests.support.asynchronous_tests import asynchronous


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


class KeyKeeper:
    """A provider that keeps public keys."""

    def __init__(self, *keys: str) -> None:
        self.keys = list(keys)

    async def account_keys(self) -> tuple[str, ...]:
        return tuple(self.keys)

    async def add_account_key(self, public_key: str) -> None:
        if public_key not in self.keys:
            self.keys.append(public_key)

    async def attach_key(self, provider_id: str, public_key: str) -> None:
        raise AssertionError("no machine is spoken of here")


def test_a_pair_is_made_that_only_its_owner_can_read(tmp_path: Path) -> None:
    pair = ensure_pair(tmp_path / "vastai/vastai_ed25519")
    assert pair.made
    assert mode(pair.private_path) == 0o600
    assert mode(pair.private_path.parent) == 0o700
    assert pair.public_path.read_text().strip() == pair.public_key
    assert pair.public_key.startswith("ssh-ed25519 ")


def test_the_pair_is_one_that_openssh_understands(tmp_path: Path) -> None:
    pair = ensure_pair(tmp_path / "id")
    derived = subprocess.run(["ssh-keygen", "-y", "-f", pair.private_path], capture_output=True, text=True, check=True)
    assert derived.stdout.split()[:2] == pair.public_key.split()[:2]


def test_making_it_again_changes_nothing(tmp_path: Path) -> None:
    first = ensure_pair(tmp_path / "id")
    content = first.private_path.read_bytes()
    again = ensure_pair(tmp_path / "id")
    assert not again.made
    assert (again.public_key, again.private_path.read_bytes()) == (first.public_key, content)


def test_those_who_make_the_pair_at_the_same_time_end_up_with_one_whose_halves_belong_together(tmp_path: Path) -> None:
    together = threading.Barrier(4)

    def make(path: Path) -> str:
        together.wait()
        return ensure_pair(path).public_key

    with ThreadPoolExecutor(4) as threads:
        for turn in range(8):
            path = tmp_path / str(turn) / "key"
            halves = [*threads.map(make, [path] * 4), (path.parent / "key.pub").read_text()]
            private = asyncssh.read_private_key(str(path)).export_public_key().decode()
            assert {" ".join(half.split()[:2]) for half in halves} == {" ".join(private.split()[:2])}
            assert sorted(file.name for file in path.parent.iterdir()) == ["key", "key.pub"]


def test_a_public_half_that_another_process_removes_while_it_is_read_is_derived(tmp_path: Path) -> None:
    pair = ensure_pair(tmp_path / "id")
    ours = tuple(pair.public_key.split()[:2])
    come_and_go = "import os, sys\nprint(flush=True)\nwhile 1: os.link(*sys.argv[1:]); os.unlink(sys.argv[2])"
    kept = tmp_path / "kept"
    pair.public_path.rename(kept)
    command = [sys.executable, "-c", come_and_go, str(kept), str(pair.public_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as another:
        try:
            assert another.stdout is not None
            assert another.stdout.readline() == b"\n", "it did not begin"
            for _ in range(1000):
                assert tuple(read_pair(pair.private_path).public_key.split()[:2]) == ours
        finally:
            another.kill()
    assert another.returncode == -signal.SIGKILL, "it stopped by itself"


def test_a_key_that_others_could_read_is_made_private(tmp_path: Path) -> None:
    pair = ensure_pair(tmp_path / "id")
    pair.private_path.chmod(0o644)
    ensure_pair(tmp_path / "id")
    assert mode(pair.private_path) == 0o600


def test_a_public_half_that_is_missing_is_taken_from_the_private_one(tmp_path: Path) -> None:
    pair = ensure_pair(tmp_path / "id")
    pair.public_path.unlink()
    assert read_pair(tmp_path / "id").public_key.split()[:2] == pair.public_key.split()[:2]
    assert not pair.public_path.exists()
    ensure_pair(tmp_path / "id")
    assert pair.public_path.exists()


def test_a_key_with_a_passphrase_is_refused_with_what_to_do(tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", tmp_path / "id"], check=True)
    (tmp_path / "id.pub").unlink()
    with pytest.raises(ConfigInvalid, match="passphrase") as problem:
        ensure_pair(tmp_path / "id")
    assert problem.value.hint


def test_where_there_is_no_key_the_next_command_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid) as problem:
        read_pair(tmp_path / "id")
    assert problem.value.hint
    assert "keys setup" in problem.value.hint


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigInvalid, match="cannot be used"):
        ensure_pair(tmp_path / "file/id")


@asynchronous
async def test_the_provider_learns_the_key_once(tmp_path: Path) -> None:
    pair = ensure_pair(tmp_path / "id")
    keeper = KeyKeeper("ssh-rsa AAAAother somebody")
    before = await check(pair, keeper)
    assert not before.is_ours_known
    assert before.advice
    after = await register(pair, keeper)
    assert after.is_ours_known
    assert after.advice is None
    assert len((await register(pair, keeper)).known) == 2


@asynchronous
async def test_a_comment_does_not_make_another_key(tmp_path: Path) -> None:
    pair = ensure_pair(tmp_path / "id")
    renamed = " ".join([*pair.public_key.split()[:2], "laptop"])
    assert (await check(pair, KeyKeeper(renamed))).is_ours_known
