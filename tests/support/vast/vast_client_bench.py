"""Our own Vast.ai client for tests: against a simulator, or against answers written down in the test."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from stationmaster.providers.base import Pause
from stationmaster.providers.vastai.calls import Calls
from stationmaster.providers.vastai.client import VastClient
from stationmaster.providers.vastai.provider import VastOptions, VastProvider
from stationmaster.providers.vastai.retries import Retries
from tests.support.vast.vast_wishes import vast_settings

SECRET = "account-key-0123456789"
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ3m1m9m7m5m3m1m9m7m5m3m1m9m7m5m3m1m9m7m5m3m tests"
OPTIONS = VastOptions(
    public_key=lambda: PUBLIC_KEY,
    ssh_key_path="/keys/vastai_ed25519",
    settings=vast_settings(preferred_gpus=("4090", "A100")),
    create_limit_seconds=2.0,
    log_interval_seconds=0.02,
)


@dataclass
class Turns:
    """A limiter that never waits, and records the calls and the pauses that the service asked for."""

    taken: list[tuple[str, str, float]] = field(default_factory=list)
    continued: list[tuple[str, str, float]] = field(default_factory=list)
    pauses: list[tuple[str, float]] = field(default_factory=list)

    async def wait_for_turn(
        self, account: str, endpoint: str, *, interval_seconds: float, continues: bool = False, pause: Pause
    ) -> None:
        (self.continued if continues else self.taken).append((account, endpoint, interval_seconds))

    async def note_answer(
        self, account: str, endpoint: str, *, interval_seconds: float, pause_seconds: float = 0.0
    ) -> None:
        if pause_seconds:
            self.pauses.append((endpoint, pause_seconds))


@dataclass
class Scripted:
    """Answers in the order they were written down; what was asked is kept, and so are the waits between."""

    answers: list[httpx.Response | Exception]
    asked: list[httpx.Request] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    paused: list[float] = field(default_factory=list)  # for rate limits
    turns: Turns = field(default_factory=Turns)

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    async def pause(self, seconds: float) -> None:
        self.paused.append(seconds)

    def client(self, *, retries: Retries | None = None, intervals: Mapping[str, float] | None = None) -> VastClient:
        calls = Calls(
            base_url="http://vast.test/api/v0",
            api_key=SECRET,
            account="default",
            limiter=self.turns,
            intervals=intervals or {},
            retries=retries or Retries(),
            transport=httpx.MockTransport(self.answer),
            sleep=self.sleep,
            pause=self.pause,
            draw=lambda: 1.0,
            clock=lambda: 1_000_000.0,
        )
        return VastClient(calls, sleep=self.sleep)

    def provider(self, **changes: Any) -> VastProvider:
        return VastProvider(self.client(), options=replace(OPTIONS, **changes))

    def body(self, index: int = -1) -> Any:
        return json.loads(self.asked[index].content)


def scripted(*answers: httpx.Response | Exception) -> Scripted:
    return Scripted(answers=list(answers))


def said(document: Any, status: int = 200, **headers: str) -> httpx.Response:
    return httpx.Response(
        status, json=document, headers={name.replace("_", "-"): text for name, text in headers.items()}
    )


def refused(status: int, error: str, message: str, **extra: Any) -> httpx.Response:
    return said({"success": False, "error": error, "msg": message, **extra}, status)


def simulated_provider(
    url: str,
    *,
    key: str,
    options: VastOptions = OPTIONS,
    retries: Retries | None = None,
    timeout_seconds: float = 20.0,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> VastProvider:
    """Our provider against a simulator, without waiting for turns."""
    client = simulated_client(url, key=key, retries=retries, timeout_seconds=timeout_seconds, sleep=sleep)
    return VastProvider(client, options=options)


def simulated_client(
    url: str,
    *,
    key: str,
    retries: Retries | None = None,
    timeout_seconds: float = 20.0,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> VastClient:
    quick = Retries(first_seconds=0.01, longest_seconds=0.2)
    calls = Calls(
        base_url=f"{url}/api/v0",
        api_key=key,
        account="default",
        limiter=Turns(),
        retries=retries or quick,
        timeout_seconds=timeout_seconds,
        sleep=sleep,
    )
    return VastClient(calls)


def instance_row(**changes: Any) -> dict[str, Any]:
    """A running instance, as the single read shows it; the fields that we read and a few that we do not."""
    return {
        "id": 7835610,
        "machine_id": 12345,
        "host_id": 678,
        "label": "sm-abcd1234-job-1",
        "actual_status": "running",
        "intended_status": "running",
        "cur_state": "running",
        "next_state": "running",
        "status_msg": "success, running pytorch/pytorch_2.4/ssh",
        "is_bid": False,
        "image_runtype": "ssh_direc ssh_proxy",
        "extra_env": [["A", "1"]],
        "ssh_host": "ssh5.vast.ai",
        "ssh_idx": "5",
        "ssh_port": 35610,
        "public_ipaddr": " 203.0.113.9\n",
        "ports": {"22/tcp": [{"HostIp": "0.0.0.0", "HostPort": "40000"}]},
        "start_date": 1787000000.2,
        "duration": 8999000.0,
        "num_gpus": 1,
        "gpu_name": "RTX 4090",
        "gpu_util": 97.0,
        "gpu_temp": 66.0,
        "disk_usage": 11.3,
        "dph_total": 0.3683,
        "storage_total_cost": 0.0083,
        "instance": {"gpuCostPerHour": 0.36, "diskHour": 0.0083, "totalHour": 0.3683},
        **changes,
    }


def offer_row(**changes: Any) -> dict[str, Any]:
    return {
        "id": 31415926,
        "ask_contract_id": 31415926,
        "machine_id": 12345,
        "gpu_name": "RTX 4090",
        "num_gpus": 1,
        "gpu_ram": 24564,
        "gpu_frac": 0.125,
        "cuda_max_good": 12.8,
        "disk_space": 812.4,
        "direct_port_count": 250,
        "duration": 9900000.0,
        "geolocation": "Quebec, CA",
        "reliability": 0.9971,
        "reliability2": 0.9971,
        "verification": "verified",
        "rentable": True,
        "rented": False,
        "is_bid": False,
        "hosting_type": 1,
        "dph_base": 0.36,
        "dph_total": 0.3719,
        "min_bid": 0.21,
        "inet_down": 904.1,
        "inet_up": 611.0,
        "inet_down_cost": 0.003,
        "inet_up_cost": 0.002,
        **changes,
    }
