"""Own machines behind a real sshd: slots, folders, processes, and what a silent host means."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stationmaster.control.wiring.ssh_provider import build_ssh_provider, known_hosts_file
from stationmaster.errors import AccessRefused, AnswerLost, NoCapacity, ProviderBusy, ProviderFault
from stationmaster.model import Machine, MachineStatus, Requirements, SshAccess
from stationmaster.money import MicroDollars
from stationmaster.providers.own_machines import SshProvider
from stationmaster.remote.base import check
from stationmaster.remote.connect import connect
from stationmaster.remote.known_hosts import pin_key
from stationmaster.settings import SshSettings
from tests.support.asynchronous_tests import asynchronous, until
from tests.support.machines.own_hosts import LABEL, host_behind, is_alive, process_of, settings_with_hosts
from tests.support.servers.ports import own_port
from tests.support.servers.sshd import Sshd

WANT = Requirements(disk_gib=0.001)


def provider_of(folder: Path, *hosts: dict[str, Any], trusted: tuple[Sshd, ...] = ()) -> SshProvider:
    return build_ssh_provider(settings_with_hosts(folder, *hosts, trusted=trusted))


def one_host(sshd: Sshd, folder: Path, **fields: Any) -> SshProvider:
    return provider_of(folder, host_behind(sshd, "box", folder / "jobs", **fields), trusted=(sshd,))


async def rented(provider: SshProvider, label: str = LABEL) -> Machine:
    offer = (await provider.offers(WANT))[0]
    made = await provider.describe(await provider.create(offer, label=label, want=WANT))
    assert made is not None
    return made


@asynchronous
async def test_a_job_gets_a_folder_of_its_own_below_the_job_root(sshd: Sshd, tmp_path: Path) -> None:
    provider = one_host(sshd, tmp_path, price_per_hour="0.25", gpu="RTX 4090", gpus=1, vram_gib=24)
    machine = await rented(provider)
    assert (machine.provider_id, machine.label, machine.status) == (f"box/{LABEL}", LABEL, MachineStatus.RUNNING)
    assert machine.price_per_hour == MicroDollars(250_000)
    access = machine.accesses[0]
    assert isinstance(access, SshAccess)
    assert access.job_root == str(tmp_path / "jobs")
    assert (tmp_path / "jobs" / "cats").is_dir()
    assert (await provider.listing()).machines == (machine,)


@asynchronous
async def test_creating_the_same_label_again_gives_the_same_machine(sshd: Sshd, tmp_path: Path) -> None:
    provider = one_host(sshd, tmp_path)
    first = await rented(provider)
    assert await rented(provider) == first


@asynchronous
async def test_what_is_run_on_a_machine_carries_its_label_and_ends_with_it(sshd: Sshd, tmp_path: Path) -> None:
    provider = one_host(sshd, tmp_path)
    machine = await rented(provider)
    remote = connect(machine.accesses[0], ssh=SshSettings(config_path=tmp_path / "ssh_config"))
    pid_file = tmp_path / "pid"
    script = f"setsid sh -c 'echo $$ > {pid_file}; exec sleep 600' >/dev/null 2>&1 </dev/null &"
    try:
        await check(remote, ["sh", "-c", script], timeout=150)
    finally:
        await remote.close()
    await until(lambda: pid_file.exists() and bool(pid_file.read_text()), what="the detached process runs")
    process = Path("/proc", pid_file.read_text().strip())
    assert f"STATIONMASTER_MACHINE={LABEL}".encode() in (process / "environ").read_bytes().split(b"\0")
    await provider.destroy(machine.provider_id)
    assert not is_alive(int(process.name))
    assert await provider.describe(machine.provider_id) is None
    assert (await provider.listing()).machines == ()


@asynchronous
async def test_destroying_removes_the_job_s_folder_and_nothing_else(sshd: Sshd, tmp_path: Path) -> None:
    provider = one_host(sshd, tmp_path, slots=2)
    mine = await rented(provider)
    other = await rented(provider, "sm-ab12cd34-dogs-1")
    jobs, outside = tmp_path / "jobs", tmp_path / "outside"
    outside.mkdir()
    (outside / "photo").write_text("precious")
    (jobs / "notes").mkdir()
    (jobs / "notes" / "machine.json").write_text('{"not": "ours"}')
    (jobs / "cats" / "output").mkdir()
    (jobs / "cats" / "output" / "model").write_text("big")
    (jobs / "cats" / "link").symlink_to(outside)
    with process_of("sm-ab12cd34-dogs-1") as bystander:
        await provider.destroy(mine.provider_id)
        await provider.destroy(mine.provider_id)
        assert bystander.poll() is None
    assert sorted(path.name for path in jobs.iterdir()) == [".lock", "dogs", "notes"]
    assert (outside / "photo").read_text() == "precious"
    assert (await provider.listing()).machines == (other,)


@asynchronous
async def test_a_folder_that_is_in_the_way_is_neither_used_nor_removed(sshd: Sshd, tmp_path: Path) -> None:
    provider = one_host(sshd, tmp_path)
    (tmp_path / "jobs" / "cats").mkdir(parents=True)
    (tmp_path / "jobs" / "cats" / "thesis").write_text("mine")
    offer = (await provider.offers(WANT))[0]
    with pytest.raises(NoCapacity, match=r"cannot create .*cats"):
        await provider.create(offer, label=LABEL, want=WANT)
    await provider.destroy(f"box/{LABEL}")
    assert (tmp_path / "jobs" / "cats" / "thesis").read_text() == "mine"
    assert not [path for path in (tmp_path / "jobs").iterdir() if path.name.startswith(".new-")]


@asynchronous
async def test_two_installations_never_share_a_job_s_folder(sshd: Sshd, tmp_path: Path) -> None:
    provider = one_host(sshd, tmp_path, slots=2)
    await rented(provider, "sm-aaaaaaaa-cats-1")
    offer = (await provider.offers(WANT))[0]
    with pytest.raises(NoCapacity):
        await provider.create(offer, label="sm-bbbbbbbb-cats-1", want=WANT)
    await provider.destroy("box/sm-bbbbbbbb-cats-1")
    assert [machine.label for machine in (await provider.listing()).machines] == ["sm-aaaaaaaa-cats-1"]


@asynchronous
async def test_no_more_machines_than_slots_are_made_however_many_ask_at_once(sshd: Sshd, tmp_path: Path) -> None:
    provider = one_host(sshd, tmp_path, slots=2)
    offer = (await provider.offers(WANT))[0]
    labels = [f"sm-ab12cd34-job{number}-1" for number in range(5)]
    answers = await asyncio.gather(
        *(provider.create(offer, label=label, want=WANT) for label in labels), return_exceptions=True
    )
    assert sum(isinstance(answer, str) for answer in answers) == 2
    assert sum(isinstance(answer, ProviderBusy) for answer in answers) == 3
    assert len((await provider.listing()).machines) == 2


@asynchronous
async def test_a_free_host_is_offered_before_a_cheaper_one_that_is_full(sshd: Sshd, tmp_path: Path) -> None:
    cheap = host_behind(sshd, "cheap", tmp_path / "cheap")
    dear = host_behind(sshd, "dear", tmp_path / "dear", price_per_hour="1.00")
    provider = provider_of(tmp_path, dear, cheap, trusted=(sshd,))
    assert [offer.id for offer in await provider.offers(WANT)] == ["cheap", "dear"]
    assert (await rented(provider)).machine_id == "cheap"
    assert [offer.id for offer in await provider.offers(WANT)] == ["dear"]
    assert (await rented(provider, "sm-ab12cd34-dogs-1")).machine_id == "dear"
    assert [offer.id for offer in await provider.offers(WANT)] == ["cheap", "dear"]  # both to be waited for


@asynchronous
async def test_a_job_waits_while_every_slot_is_in_use_and_learns_where(sshd: Sshd, tmp_path: Path) -> None:
    provider = one_host(sshd, tmp_path)
    assert await provider.waiting_reason(WANT) is None
    machine = await rented(provider)
    assert await provider.waiting_reason(WANT) == "every slot is in use: 1 on box"
    assert await provider.waiting_reason(replace(WANT, gpus=8)) is None, "it would never fit"
    await provider.destroy(machine.provider_id)
    assert await provider.waiting_reason(WANT) is None


@asynchronous
async def test_only_hosts_that_fit_are_offered_and_those_that_failed_come_last(sshd: Sshd, tmp_path: Path) -> None:
    hosts = [
        host_behind(sshd, "small", tmp_path / "a", gpus=1, vram_gib=8),
        host_behind(sshd, "big", tmp_path / "b", gpus=1, vram_gib=24, price_per_hour="0.10"),
        host_behind(sshd, "dear", tmp_path / "c", gpus=1, vram_gib=24, price_per_hour="9.00"),
    ]
    provider = provider_of(tmp_path, *hosts, trusted=(sshd,))
    want = replace(WANT, gpus=1, vram_gib=24)
    assert [offer.id for offer in await provider.offers(want)] == ["big", "dear"]
    assert [offer.id for offer in await provider.offers(replace(want, max_price_per_hour=MicroDollars(500_000)))] == [
        "big"
    ]
    avoiding = replace(want, avoided_machines=frozenset({"big"}))
    assert [offer.id for offer in await provider.offers(avoiding)] == ["dear", "big"]
    assert await provider.offers(replace(want, disk_gib=1e9)) == []


@asynchronous
async def test_a_silent_host_makes_the_listing_incomplete_and_its_machines_unknown(sshd: Sshd, tmp_path: Path) -> None:
    dead = {**host_behind(sshd, "dead", tmp_path / "dead"), "port": own_port()}
    provider = provider_of(tmp_path, host_behind(sshd, "box", tmp_path / "jobs"), dead, trusted=(sshd,))
    machine = await rented(provider)
    assert [offer.id for offer in await provider.offers(WANT)] == ["box"]
    listing = await provider.listing()
    assert (listing.machines, listing.complete) == ((machine,), False)
    with pytest.raises(ProviderBusy, match="dead does not answer"):
        await provider.describe(f"dead/{LABEL}")
    with pytest.raises(ProviderBusy, match="dead does not answer"):
        await provider.destroy(f"dead/{LABEL}")
    offer = replace((await provider.offers(WANT))[0], id="dead")
    with pytest.raises(AnswerLost):
        await provider.create(offer, label="sm-ab12cd34-dogs-1", want=WANT)


@asynchronous
async def test_when_no_host_answers_that_is_said_instead_of_offering_nothing(sshd: Sshd, tmp_path: Path) -> None:
    dead = {**host_behind(sshd, "dead", tmp_path / "dead"), "port": own_port()}
    provider = provider_of(tmp_path, dead)
    with pytest.raises(ProviderBusy, match="dead does not answer"):
        await provider.offers(WANT)
    with pytest.raises(ProviderBusy, match="dead does not answer"):
        await provider.listing()


@asynchronous
async def test_a_machine_on_a_host_that_left_the_settings_is_never_gone(sshd: Sshd, tmp_path: Path) -> None:
    machine = await rented(one_host(sshd, tmp_path))
    without = provider_of(tmp_path)
    with pytest.raises(ProviderFault, match="box is no longer in the settings"):
        await without.describe(machine.provider_id)


@asynchronous
async def test_a_host_whose_key_nobody_confirmed_gets_nothing(sshd: Sshd, tmp_path: Path) -> None:
    host = host_behind(sshd, "box", tmp_path / "jobs")
    provider = provider_of(tmp_path, host)
    with pytest.raises(AccessRefused, match="you have not confirmed") as refused:
        await provider.offers(WANT)
    assert refused.value.hint is not None
    assert "stationmaster keys trust box" in refused.value.hint
    assert not (tmp_path / "jobs").exists()
    settings = settings_with_hosts(tmp_path, host)
    pin_key(known_hosts_file(settings), "127.0.0.1", sshd.port, sshd.host_key)
    assert (await rented(provider)).status is MachineStatus.RUNNING


@asynchronous
async def test_a_pinned_key_is_believed_before_known_hosts(sshd: Sshd, tmp_path: Path) -> None:
    host = host_behind(sshd, "box", tmp_path / "jobs")
    settings = settings_with_hosts(tmp_path, host, trusted=(sshd,))
    other = (sshd.folder / "client_key.pub").read_text()
    pin_key(known_hosts_file(settings), "127.0.0.1", sshd.port, other)
    with pytest.raises(AccessRefused):
        await build_ssh_provider(settings).offers(WANT)


@asynchronous
async def test_without_own_machines_the_setting_is_named(tmp_path: Path) -> None:
    provider = provider_of(tmp_path)
    with pytest.raises(AccessRefused, match="none of your own machines") as refused:
        await provider.offers(WANT)
    assert "STATIONMASTER_SSH__HOSTS" in str(refused.value.hint)
    listing = await provider.listing()
    assert (listing.machines, listing.complete) == ((), True)


@asynchronous
async def test_one_computer_under_two_names_does_not_double_its_machines(sshd: Sshd, tmp_path: Path) -> None:
    hosts = [host_behind(sshd, name, tmp_path / "jobs", slots=2) for name in ("one", "two")]
    provider = provider_of(tmp_path, *hosts, trusted=(sshd,))
    machine = await rented(provider)
    assert [each.provider_id for each in (await provider.listing()).machines] == [machine.provider_id]


@asynchronous
async def test_a_destroy_that_was_cut_off_is_listed_as_ending_and_can_be_finished(sshd: Sshd, tmp_path: Path) -> None:
    provider = one_host(sshd, tmp_path)
    machine = await rented(provider)
    description = tmp_path / "jobs" / "cats" / "machine.json"
    description.write_text(json.dumps({**json.loads(description.read_text()), "ending": True}))
    listed = (await provider.listing()).machines
    assert [(each.provider_id, each.status, each.accesses) for each in listed] == [
        (machine.provider_id, MachineStatus.FAILED, ())
    ]
    await provider.destroy(machine.provider_id)
    assert await provider.describe(machine.provider_id) is None


@asynchronous
async def test_a_machine_without_a_folder_exists_while_a_process_of_it_lives(sshd: Sshd, tmp_path: Path) -> None:
    provider = one_host(sshd, tmp_path)
    with process_of(LABEL) as process:
        found = await provider.describe(f"box/{LABEL}")
        assert found is not None
        assert found.status is MachineStatus.FAILED
        await provider.destroy(f"box/{LABEL}")
        process.wait()
    assert await provider.describe(f"box/{LABEL}") is None


@asynchronous
async def test_a_job_root_that_cannot_be_made_is_named(sshd: Sshd, tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text("a file")
    with pytest.raises(ProviderFault, match="jobs is not writable"):
        await one_host(sshd, tmp_path).offers(WANT)
