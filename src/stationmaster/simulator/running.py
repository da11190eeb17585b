"""The passing of time: machines start, contracts end, credit runs out, faults occur on running machines."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial

from stationmaster.money import MicroDollars
from stationmaster.simulator.cloud import Cloud, log, machine_spec, target_of
from stationmaster.simulator.faults import HAPPENING, FaultKind, InjectedFault
from stationmaster.simulator.instances import ActualStatus, Instance, WantedState
from stationmaster.simulator.renting import destroy_now, stop


async def run(cloud: Cloud, *, interval_seconds: float = 0.05) -> None:
    """Call `tick` periodically until cancelled."""
    while True:
        try:
            await tick(cloud)
        except Exception:  # noqa: BLE001  # top of the loop: one bad machine must not stop the service
            log.exception("simulator.tick_failed")
        await asyncio.sleep(interval_seconds)


async def tick(cloud: Cloud) -> None:
    """Update everything to the current time; one call at a time, so that a waiting caller finds it done."""
    async with cloud.ticking:
        for action in cloud.due_actions():
            await action()
        for instance in cloud.existing():
            await _advance(cloud, instance)
        for account_id in list(cloud.records.accounts):
            await _enforce_credit(cloud, account_id)
        await _trigger_fault(cloud)


async def adopt_all(cloud: Cloud) -> None:
    """After a restart: adopt machines that still run, and boot those that should run."""
    for instance in cloud.existing():
        if instance.actual is not ActualStatus.RUNNING:
            continue
        address = await cloud.machines.adopt(machine_spec(instance))
        if address is not None:
            cloud.update(instance.id, address=address)
        else:
            await stop(cloud, instance.id, message="the host was restarted", wanted=WantedState.RUNNING)
            cloud.update(instance.id, actual=ActualStatus.LOADING, ready_at=cloud.now())


async def _advance(cloud: Cloud, instance: Instance) -> None:
    now = cloud.now()
    if instance.destroy_at is not None and now >= instance.destroy_at:
        await destroy_now(cloud, instance.id)
    elif now >= instance.end_at and instance.wanted is WantedState.RUNNING:
        await stop(cloud, instance.id, message="the contract has ended")
    elif instance.actual is ActualStatus.RUNNING:
        await cloud.note_traffic(instance.id)
    elif instance.wanted is WantedState.RUNNING and instance.actual is not ActualStatus.OFFLINE:
        _start_up(cloud, instance, now)


def _start_up(cloud: Cloud, instance: Instance, now: float) -> None:
    created_at = instance.created_at + cloud.pace.created_seconds
    if instance.actual is None and now >= created_at:
        cloud.update(instance.id, actual=ActualStatus.CREATED)
    elif instance.stuck:
        return
    elif instance.actual is ActualStatus.CREATED:
        pulling = f"{instance.order.image.split('/')[-1]}: Pulling from {instance.order.image.split(':')[0]}"
        cloud.update(instance.id, actual=ActualStatus.LOADING, status_message=pulling)
    elif now >= instance.ready_at and instance.actual is not None and instance.id not in cloud.booting:
        cloud.booting.add(instance.id)
        task = asyncio.create_task(_boot(cloud, instance.id))
        cloud.tasks.add(task)
        task.add_done_callback(cloud.tasks.discard)


async def _boot(cloud: Cloud, instance_id: int) -> None:
    try:
        async with cloud.lock(instance_id):
            instance = cloud.records.instances[instance_id]
            if (
                not instance.exists
                or instance.wanted is not WantedState.RUNNING
                or instance.actual is ActualStatus.RUNNING
            ):
                return
            address = await cloud.machines.boot(machine_spec(instance))
            await _delay_ssh(cloud, instance_id)
            instance = cloud.records.instances[instance_id]
            cloud.records.put_instance(instance.came_up(cloud.now(), address))
        log.info("machine.running", instance=instance_id, port=address.direct_port)
    except Exception as problem:  # noqa: BLE001  # reported in the status message, as real hosts do
        log.exception("machine.boot_failed", instance=instance_id)
        cloud.update(instance_id, stuck=True, status_message=f"Error response from daemon: {problem}")
    finally:
        cloud.booting.discard(instance_id)


async def _delay_ssh(cloud: Cloud, instance_id: int) -> None:
    if cloud.pace.ssh_seconds > 0:
        await cloud.machines.refuse_ssh(instance_id, door="both", refuse=True)
        answer = partial(cloud.machines.refuse_ssh, instance_id, door="both", refuse=False)
        cloud.later(cloud.now() + cloud.pace.ssh_seconds, answer)


async def _enforce_credit(cloud: Cloud, account_id: int) -> None:
    wanted = [
        instance
        for instance in cloud.existing()
        if instance.account_id == account_id and instance.wanted is WantedState.RUNNING
    ]
    if wanted and cloud.credit(account_id) <= 0:
        for instance in wanted:
            await stop(cloud, instance.id, message="the account is out of credit")


async def _trigger_fault(cloud: Cloud) -> None:
    """Trigger at most one fault per tick, first on the machine with the fewest, so that they spread."""
    kinds = {fault.kind for fault in cloud.faults.armed} & HAPPENING
    if not kinds:
        return
    struck = Counter(strike.instance_id for strike in cloud.faults.strikes)
    for instance in sorted(cloud.existing(), key=lambda instance: (struck[instance.id], instance.id)):
        for kind in sorted(kinds):
            fault = cloud.faults.take(kind, target_of(instance), now=cloud.now()) if _can(kind, instance) else None
            if fault is not None:
                log.info("fault.struck", kind=kind, instance=instance.id)
                await _apply(cloud, instance, fault)
                return


def _can(kind: FaultKind, instance: Instance) -> bool:
    """Only on running machines, and OUTBID only on one rented by a bid."""
    if instance.actual is not ActualStatus.RUNNING or instance.destroy_at is not None:
        return False
    return kind is not FaultKind.OUTBID or instance.order.bid_usd_per_hour is not None


async def _apply(cloud: Cloud, instance: Instance, fault: InjectedFault) -> None:
    machines, machine_id, until = cloud.machines, instance.id, cloud.now() + fault.seconds
    match fault.kind:
        case FaultKind.HOST_VANISHES:
            await _vanish(cloud, machine_id)
        case FaultKind.PARTITION:
            await machines.partition(machine_id, cut=True)
            cloud.later(until, partial(machines.partition, machine_id, cut=False))
        case FaultKind.HOST_KEY_SWAPPED:
            await machines.swap_host_key(machine_id)
        case FaultKind.SSH_REFUSED:
            await machines.refuse_ssh(machine_id, door=fault.door, refuse=True)
            cloud.later(until, partial(machines.refuse_ssh, machine_id, door=fault.door, refuse=False))
        case FaultKind.STATUS_LIES:
            cloud.update(machine_id, told_status=ActualStatus.EXITED, told_until=until)
        case FaultKind.DISK_FULL:
            await machines.fill_disk(machine_id)
        case FaultKind.CLOCK_SKEW:
            await machines.skew_clock(machine_id, fault.seconds)
        case FaultKind.CREDIT_GONE:
            _spend_everything(cloud, instance.account_id)
        case FaultKind.OUTBID:
            cloud.update(machine_id, outbid_until=until)
            await stop(cloud, machine_id, message="outbid")
        case FaultKind.CONTRACT_ENDS:
            cloud.update(machine_id, end_at=cloud.now())
        case _:
            raise AssertionError(f"{fault.kind} waits for a request")


async def _vanish(cloud: Cloud, instance_id: int) -> None:
    """Simulate a power cut. Whether the live service bills the GPU meanwhile is unknown; here it does not."""
    async with cloud.lock(instance_id):
        await cloud.note_traffic(instance_id)
        await cloud.machines.halt(instance_id)
        gone = cloud.records.instances[instance_id].stopped_billing(cloud.now())
        cloud.records.put_instance(gone)
        cloud.update(instance_id, actual=ActualStatus.OFFLINE, running_since=None)


def _spend_everything(cloud: Cloud, account_id: int) -> None:
    account = cloud.records.accounts[account_id]
    left = cloud.credit(account_id)
    cloud.records.put_account(account.with_paid_in(MicroDollars(account.paid_in - max(0, left))))
