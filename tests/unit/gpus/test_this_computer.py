"""Which GPUs of this computer fit a job, in numbers, and which jobs it has to wait for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stationmaster.estimate import hours_on
from stationmaster.model import FoundGpus, Gpu, GpuMaker, Requirements
from stationmaster.money import ZERO, MicroDollars
from stationmaster.providers.this_computer import Inventory, rank_this_computer, waiting_reason

WANT = Requirements(gpus=1, vram_gib=24, disk_gib=10, cuda=12.4, hours=2.0)


def gpu(number: int = 0, **facts: Any) -> Gpu:
    usual: dict[str, Any] = {"name": "RTX 4090", "total_gib": 24.0, "free_gib": 23.5, "cuda": 13.0}
    return Gpu(id=f"GPU-{number}", number=number, **{"maker": GpuMaker.NVIDIA, **usual, **facts})


def computer(*gpus: Gpu, problems: tuple[str, ...] = (), **facts: Any) -> Inventory:
    usual: dict[str, Any] = {"holders": {}, "disk_free_gib": 100.0, "price_per_hour": ZERO}
    return Inventory(found=FoundGpus(gpus=gpus, problems=problems), **{**usual, **facts})


def offered(inventory: Inventory, want: Requirements = WANT) -> list[str]:
    return [ranked.offer.id for ranked in rank_this_computer(inventory, want, hours_on(want)).chosen]


def reasons(inventory: Inventory, want: Requirements = WANT) -> list[str]:
    return [out.why for out in rank_this_computer(inventory, want, hours_on(want)).left_out]


def test_each_gpu_that_fits_is_an_offer_with_the_hours_that_it_takes() -> None:
    ranking = rank_this_computer(computer(gpu(), gpu(1, name="RTX 3090")), WANT, hours_on(WANT))
    assert [(one.offer.gpu, one.hours, one.job_cost) for one in ranking.chosen] == [
        ("RTX 4090", 2.0, 0),
        ("RTX 3090", 3.8, 0),
    ]
    assert not ranking.left_out


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"total_gib": 12.0, "free_gib": 11.5}, "12.0 GiB of GPU memory (22.3 needed)"),
        ({"free_gib": 9.5}, "9.5 of 24.0 GiB are free (22.3 needed); other programs use 14.5"),
        ({"cuda": 12.1}, "its driver supports CUDA 12.1 (12.4 needed)"),
        ({"maker": GpuMaker.AMD, "cuda": None}, "CUDA 12.4 is needed, which is NVIDIA's"),
        ({"unusable": "its memory is unknown"}, "its memory is unknown"),
    ],
)
def test_a_gpu_that_does_not_fit_is_left_out_with_the_numbers(facts: dict[str, Any], why: str) -> None:
    inventory = computer(gpu(**facts))
    assert (offered(inventory), reasons(inventory)) == ([], [f"RTX 4090: {why}"])


def test_a_driver_of_unknown_version_is_given_the_job() -> None:
    assert offered(computer(gpu(cuda=None))) == ["GPU-0"]


def test_a_recipe_without_cuda_may_use_any_makers_gpu() -> None:
    apple = gpu(maker=GpuMaker.APPLE, name="Apple M2 Max", cuda=None, total_gib=32.0, free_gib=25.0)
    assert offered(computer(apple), replace(WANT, cuda=None)) == ["GPU-0"]


@pytest.mark.parametrize(
    ("inventory", "want", "why"),
    [
        (computer(), WANT, "no GPU was found on this computer"),
        (
            computer(problems=("nvidia-smi fails: no devices",)),
            WANT,
            "no GPU was found on this computer; nvidia-smi fails: no devices",
        ),
        (computer(gpu(), disk_free_gib=3.25), WANT, "3.2 GiB of disk are free (10 needed)"),
        (
            computer(gpu(), price_per_hour=MicroDollars(300_000)),
            replace(WANT, max_price_per_hour=MicroDollars(200_000)),
            "$0.300 per hour (loopback.price_per_hour) is above $0.200",
        ),
        (computer(gpu()), replace(WANT, gpus=2), "1 x RTX 4090 (2 alike needed)"),
    ],
)
def test_a_computer_that_does_not_fit_says_why(inventory: Inventory, want: Requirements, why: str) -> None:
    assert (offered(inventory, want), reasons(inventory, want)) == ([], [why])


def test_a_job_without_gpu_needs_none() -> None:
    assert offered(computer(), replace(WANT, gpus=0, cuda=None)) == ["this-computer"]


def test_several_gpus_of_one_job_are_alike() -> None:
    inventory = computer(gpu(), gpu(1, name="RTX 3090"), gpu(2), gpu(3))
    assert offered(inventory, replace(WANT, gpus=2)) == ["GPU-0,GPU-2"]


def test_free_gpus_come_before_those_in_use_and_those_that_failed_last() -> None:
    inventory = computer(gpu(), gpu(1), gpu(2), holders={"GPU-0": "sm-ab12cd34-cats-1"})
    assert offered(inventory, replace(WANT, avoided_machines=frozenset({"GPU-1"}))) == ["GPU-2", "GPU-1", "GPU-0"]


def test_a_job_waits_only_while_jobs_of_ours_use_every_gpu_that_fits() -> None:
    busy = {"GPU-0": "sm-ab12cd34-cats-1"}
    full = gpu(free_gib=1.0)
    assert waiting_reason(computer(full, holders=busy), WANT) == (
        "this computer's GPUs are in use: RTX 4090 (number 0) by cats"
    )
    assert waiting_reason(computer(full, gpu(1), holders=busy), WANT) is None, "another one is free"
    assert waiting_reason(computer(full), WANT) is None, "another program uses it: nobody knows for how long"
    small = gpu(total_gib=8.0, free_gib=8.0)
    assert waiting_reason(computer(small, holders=busy), WANT) is None, "it would never fit"
