"""Key pairs and host keys as every face sees them: a simulated Vast.ai, a real sshd."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from stationmaster.errors import ConfigInvalid, RemoteError, UserError
from stationmaster.simulator.harness import simulator_thread
from tests.support.jobs.local_world import LocalWorld
from tests.support.machines.own_hosts import host_behind
from tests.support.servers.sshd import Sshd, running_sshd
from tests.support.vast.simulated_vast import API_KEY, quick_settings

OpenWorld = Callable[..., LocalWorld]


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@pytest.fixture
def pair(tmp_path: Path) -> str:
    """Where the pair will be."""
    return str(tmp_path / "keys" / "id_ed25519")


@pytest.fixture
def customer(open_local_world: OpenWorld, pair: str, tmp_path: Path) -> Iterator[LocalWorld]:
    """A station with an account at a simulated Vast.ai, and no key there yet."""
    with simulator_thread(quick_settings(tmp_path / "simulator")) as url:
        yield open_local_world(
            VASTAI_API_KEY=API_KEY,
            VASTAI_API_BASE_URL=f"{url}/api/v0",
            VASTAI_SSH_KEY_PATH=pair,
            STATIONMASTER_VASTAI__CALL_SPACING="0",
        )


def test_a_pair_is_made_once_and_its_provider_knows_it(customer: LocalWorld, pair: str) -> None:
    first, second = customer.station.keys.setup(), customer.station.keys.setup()
    assert (first.made, second.made) == (True, False)
    assert (first.private_path, first.public_path) == (pair, f"{pair}.pub")
    assert first.public == second.public
    (account,) = second.providers.values()
    assert account.knows_ours
    assert [key.is_same_as(first.public) for key in account.keys] == [True]
    assert account.keys[0].fingerprint == first.public.fingerprint


def test_a_check_tells_of_a_key_that_the_provider_does_not_know_and_registers_nothing(
    customer: LocalWorld, open_local_world: OpenWorld, pair: str
) -> None:
    open_local_world(VASTAI_SSH_KEY_PATH=pair).station.keys.setup()  # with no account
    for _ in range(2):
        checked = customer.station.keys.check()
        assert [(name, account.keys, account.knows_ours) for name, account in checked.providers.items()] == [
            ("vastai", (), False)
        ]
    customer.station.keys.setup()
    assert customer.station.keys.check().providers["vastai"].knows_ours


def test_without_an_account_there_is_a_pair_and_nobody_who_knows_it(open_local_world: OpenWorld, pair: str) -> None:
    standing = open_local_world(VASTAI_SSH_KEY_PATH=pair).station.keys.setup()
    assert (standing.made, standing.providers, standing.public.kind) == (True, {}, "ssh-ed25519")


def test_a_check_without_a_pair_says_how_to_make_one(open_local_world: OpenWorld, pair: str) -> None:
    with pytest.raises(ConfigInvalid, match="there is no SSH key") as refused:
        open_local_world(VASTAI_SSH_KEY_PATH=pair).station.keys.check()
    assert "keys setup" in str(refused.value.hint)
    assert not Path(pair).exists()


def test_a_host_key_is_told_until_it_is_pinned_and_then_known_by_name_and_address(
    open_local_world: OpenWorld, sshd: Sshd, tmp_path: Path
) -> None:
    hosts = json.dumps([host_behind(sshd, "box", tmp_path / "jobs")])
    keys = open_local_world(STATIONMASTER_SSH__HOSTS=hosts).station.keys
    for _ in range(2):
        offered = keys.offered_by("box")
        assert (offered.is_new, offered.pinned) == (True, ())
        assert offered.key.line.split()[:2] == sshd.host_key.split()[:2]
    keys.pin("box", offered.key)
    for name in ("box", f"127.0.0.1:{sshd.port}"):
        again = keys.offered_by(name)
        assert (again.host, again.is_new, len(again.pinned)) == (name, False, 1)


def test_a_changed_host_key_is_shown_beside_the_old_one_and_takes_its_place(
    local_world: LocalWorld, sshd: Sshd
) -> None:
    keys, host = local_world.station.keys, f"127.0.0.1:{sshd.port}"
    offered = keys.offered_by(host)
    other = replace(offered.key, line=(sshd.folder / "client_key.pub").read_text().strip())
    keys.pin(host, other)
    changed = keys.offered_by(host)
    assert (changed.is_new, [known.is_same_as(other) for known in changed.pinned]) == (True, [True])
    keys.pin(host, changed.key)
    assert [known.is_same_as(offered.key) for known in keys.offered_by(host).pinned] == [True]


@pytest.mark.parametrize("host", ["", "two words", "box:", "box:ssh", "box:0", "box:65536"])
def test_what_names_no_machine_is_refused(local_world: LocalWorld, host: str) -> None:
    with pytest.raises(UserError, match="is not a host"):
        local_world.station.keys.offered_by(host)


def test_a_machine_that_does_not_answer_is_told_with_what_to_check(local_world: LocalWorld) -> None:
    with pytest.raises(RemoteError) as silence:
        local_world.station.keys.offered_by("127.0.0.1:1")
    assert "check the address" in str(silence.value.hint)
