"""A GPU of this computer belongs to one machine at a time, whose processes see no other."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from pathlib import Path

import pytest

from stationmaster.errors import NoCapacity, ProviderBusy
from stationmaster.model import LocalAccess, Requirements
from stationmaster.providers.gpus.finding import find_gpus
from stationmaster.providers.loopback import LoopbackProvider
from tests.support.asynchronous_tests import asynchronous
from tests.support.machines.gpu_tools import UUIDS, nvidia_gpu, write_nvidia_smi, write_tool

WANT = Requirements(disk_gib=0.001, gpus=1, vram_gib=20)
FIRST, SECOND = "sm-ab12cd34-first-1", "sm-ab12cd34-second-1"


def provider_in(folder: Path) -> LoopbackProvider:
    environment = {"PATH": f"{folder}:{os.environ['PATH']}"}
    return LoopbackProvider(folder / "machines", environment=environment, find_gpus=partial(find_gpus, environment))


async def make(provider: LoopbackProvider, label: str, want: Requirements = WANT) -> dict[str, str]:
    """A machine with the best offer; the environment of its processes."""
    offer, *_ = await provider.offers(want)
    await provider.create(offer, label=label, want=want)
    machine = await provider.describe(label)
    assert machine is not None
    (access,) = machine.accesses
    assert isinstance(access, LocalAccess)
    return dict(access.environment)


@asynchronous
async def test_two_machines_get_two_gpus_and_a_third_waits_until_one_is_destroyed(tmp_path: Path) -> None:
    write_nvidia_smi(tmp_path, [nvidia_gpu(), nvidia_gpu(1)])
    provider = provider_in(tmp_path)
    first, second = await make(provider, FIRST), await make(provider, SECOND)
    assert {first["CUDA_VISIBLE_DEVICES"], second["CUDA_VISIBLE_DEVICES"]} == set(UUIDS)
    reason = await provider.waiting_reason(WANT)
    assert reason is not None
    assert all(job in reason for job in ("by first", "by second"))
    with pytest.raises(ProviderBusy, match="in use"):
        await make(provider, "sm-ab12cd34-third-1")
    await provider.destroy(FIRST)
    assert await provider.waiting_reason(WANT) is None
    assert (await make(provider, "sm-ab12cd34-third-1"))["CUDA_VISIBLE_DEVICES"] == first["CUDA_VISIBLE_DEVICES"]


@asynchronous
async def test_a_machine_tells_its_gpus_and_creating_it_again_changes_nothing(tmp_path: Path) -> None:
    write_nvidia_smi(tmp_path, [nvidia_gpu(), nvidia_gpu(1)])
    provider = provider_in(tmp_path)
    both = Requirements(disk_gib=0.001, gpus=2, vram_gib=20)
    before = await make(provider, FIRST, both)
    assert before["CUDA_VISIBLE_DEVICES"] == ",".join(UUIDS)
    machine = await provider.describe(FIRST)
    assert machine is not None
    assert (machine.gpu, machine.gpus) == ("RTX 4090", 2)
    assert await make(provider, FIRST, both) == before


@asynchronous
async def test_a_machine_without_gpu_sees_none(tmp_path: Path) -> None:
    write_nvidia_smi(tmp_path, [nvidia_gpu()])
    environment = await make(provider_in(tmp_path), FIRST, Requirements(disk_gib=0.001))
    assert (environment["CUDA_VISIBLE_DEVICES"], environment["HIP_VISIBLE_DEVICES"]) == ("", "")


@asynchronous
async def test_a_gpu_of_amd_is_named_by_its_number(tmp_path: Path) -> None:
    cards = '{"card1": {"VRAM Total Memory (B)": "25753026560", "VRAM Total Used Memory (B)": "0"}}'
    write_tool(tmp_path, "rocm-smi", f"#!/bin/sh\necho '{cards}'\n")
    environment = await make(provider_in(tmp_path), FIRST)
    assert (environment["HIP_VISIBLE_DEVICES"], environment["CUDA_VISIBLE_DEVICES"]) == ("1", "")


@asynchronous
async def test_a_gpu_that_another_program_filled_since_the_offer_is_refused_with_the_numbers(tmp_path: Path) -> None:
    write_nvidia_smi(tmp_path, [nvidia_gpu()])
    provider = provider_in(tmp_path)
    (offer,) = await provider.offers(WANT)
    write_nvidia_smi(tmp_path, [nvidia_gpu(free=1024)])
    with pytest.raises(NoCapacity, match=r"1\.0 of 24\.0 GiB are free \(18\.6 needed\); other programs use 23\.0"):
        await provider.create(offer, label=FIRST, want=WANT)
    assert not (await provider.listing()).machines


@asynchronous
async def test_of_many_that_ask_at_once_each_gpu_goes_to_one(tmp_path: Path) -> None:
    write_nvidia_smi(tmp_path, [nvidia_gpu(), nvidia_gpu(1)])
    offer, *_ = await provider_in(tmp_path).offers(WANT)

    async def create(number: int) -> bool:
        try:
            await provider_in(tmp_path).create(offer, label=f"sm-ab12cd34-job{number}-1", want=WANT)
        except ProviderBusy:
            return False
        return True

    assert sorted(await asyncio.gather(*map(create, range(6)))) == [False] * 4 + [True] * 2


@asynchronous
async def test_a_machine_of_an_older_version_sees_every_gpu_as_before(tmp_path: Path) -> None:
    provider = provider_in(tmp_path)
    old = tmp_path / "machines" / FIRST
    old.mkdir(parents=True)
    (old / "machine.json").write_text('{"created_at": 1.0, "price_per_hour": 0}')
    machine = await provider.describe(FIRST)
    assert machine is not None
    (access,) = machine.accesses
    assert isinstance(access, LocalAccess)
    assert "CUDA_VISIBLE_DEVICES" not in dict(access.environment)


@asynchronous
async def test_a_machine_that_is_half_destroyed_is_not_taken_for_a_created_one(tmp_path: Path) -> None:
    write_nvidia_smi(tmp_path, [nvidia_gpu()])
    provider = provider_in(tmp_path)
    await make(provider, FIRST)
    (tmp_path / "machines" / FIRST / "machine.json").unlink()
    with pytest.raises(ProviderBusy, match="by first"):
        await make(provider, FIRST)
    assert await provider.waiting_reason(WANT) is not None, "its GPU is free only when its folder is gone"
    await provider.destroy(FIRST)
    assert await provider.waiting_reason(WANT) is None
