"""The provider against machines that are real: host keys before the login, both doors, the guard in charge."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import asyncssh

from stationmaster.model import Machine, MachineStatus, Requirements, SshAccess
from stationmaster.providers.vastai.ssh_keys import KeyPair
from tests.support.asynchronous_tests import asynchronous
from tests.support.vast.vast_client_bench import OPTIONS, simulated_provider
from tests.support.vast.vast_wishes import vast_settings

WANT = Requirements(gpus=1, vram_gib=24.0, disk_gib=10.0, hours=2.0)


async def reachable(account: Any, provider_id: str) -> tuple[Machine, tuple[str, ...]]:
    """The running machine and its host keys, as the provider tells them."""
    async with asyncio.timeout(30):
        while True:
            machine = await account.provider.describe(provider_id)
            if machine is not None and machine.status is MachineStatus.RUNNING and machine.accesses:
                keys = await account.provider.host_keys(provider_id)
                if keys:
                    return machine, keys
            await asyncio.sleep(0.05)


async def said_by(access: SshAccess, host_keys: tuple[str, ...], command: str) -> str:
    """What a command prints there; the login fails unless the host has one of the keys."""
    trusted = asyncssh.import_known_hosts("".join(f"[{access.host}]:{access.port} {key}\n" for key in host_keys))
    async with asyncssh.connect(
        access.host,
        access.port,
        username=access.user,
        client_keys=[access.key_path],
        known_hosts=trusted,
        config=None,
        agent_path=None,
    ) as connection:
        done = await connection.run(command, check=True)
        return str(done.stdout).strip()


@asynchronous
async def test_host_keys_are_known_before_the_first_login_at_both_doors(real_account: Any) -> None:
    machine, keys = await reachable(real_account, await real_account.rent())
    assert len(machine.accesses) == 2
    for access in machine.accesses:
        assert isinstance(access, SshAccess)
        assert await said_by(access, keys, "echo in") == "in"


@asynchronous
async def test_a_swapped_host_key_is_not_one_that_was_told(real_account: Any) -> None:
    provider_id = await real_account.rent()
    machine, keys = await reachable(real_account, provider_id)
    real_account.customer.arm("host_key_swapped", instance_id=int(provider_id))
    access = machine.accesses[0]
    assert isinstance(access, SshAccess)
    async with asyncio.timeout(20):
        while True:
            try:
                await said_by(access, keys, "true")
            except asyncssh.HostKeyNotVerifiable:
                break
            except (OSError, asyncssh.Error):
                pass  # its doors close for a moment while the key is changed
            await asyncio.sleep(0.05)
    assert await real_account.provider.host_keys(provider_id) == keys


@asynchronous
async def test_the_guard_stops_a_machine_with_work_on_it_when_nobody_comes(real_account: Any, pair: KeyPair) -> None:
    options = replace(
        OPTIONS,
        public_key=lambda: pair.public_key,
        ssh_key_path=str(pair.private_path),
        settings=vast_settings(guard_idle=2.0),
    )
    impatient = simulated_provider(real_account.url, key=real_account.customer.key, options=options)
    provider_id = await impatient.create(await real_account.offer(), label="sm-ab12cd34-guard-1", want=WANT)
    machine, keys = await reachable(real_account, provider_id)
    access = machine.accesses[0]
    assert isinstance(access, SshAccess)
    begin = 'f=$STATIONMASTER_JOB_ROOT/job/.trackside/steps/0.1; mkdir -p "$f"; echo model >"$f/started"'
    await said_by(access, keys, begin)
    async with asyncio.timeout(30):
        while True:
            stopped = await impatient.describe(provider_id)
            assert stopped is not None, "a machine with work on it is not destroyed"
            if stopped.status is MachineStatus.STOPPED:
                break
            await asyncio.sleep(0.1)
    assert real_account.truth(provider_id)["exists"]


@asynchronous
async def test_the_accounts_key_is_nowhere_on_the_machine(real_account: Any) -> None:
    machine, keys = await reachable(real_account, await real_account.rent())
    access = machine.accesses[0]
    assert isinstance(access, SshAccess)
    secret = real_account.customer.key
    files = await said_by(access, keys, f"cd ~/..; grep -rl {secret} . || true")
    variables = await said_by(access, keys, "env; cat /proc/self/environ | tr '\\0' '\\n'")
    assert files == ""
    assert secret not in variables
