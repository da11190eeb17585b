"""Customer operations: rent, stop, start, label, bid, destroy."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from stationmaster.money import MicroDollars, from_dollars
from stationmaster.simulator import api_refusals
from stationmaster.simulator.accounts import Identity
from stationmaster.simulator.cloud import Cloud, log
from stationmaster.simulator.faults import FaultKind
from stationmaster.simulator.instances import ActualStatus, Instance, InstanceOrder, WantedState
from stationmaster.simulator.market import MarketOffer

_SCRIPT_LIMIT = 4096
_ENVIRONMENT_LIMIT = 32768
QUEUED = "Required resources are currently unavailable, state change queued."


class CreateRequest(BaseModel):
    """The body of a create call; fields that the simulator does not use are ignored."""

    model_config = ConfigDict(extra="ignore")

    image: str | None = Field(default=None, max_length=1024)
    template_hash_id: str | None = None
    disk: float = Field(default=10.0, gt=0)
    env: dict[str, Any] | str | None = None
    onstart: str | None = None
    runtype: str | None = None
    args: list[str] | None = None
    args_str: str | None = None
    label: str | None = Field(default=None, max_length=256)
    price: float | None = None
    target_state: str | None = None


def read_create_request(document: Any) -> CreateRequest:
    try:
        request = CreateRequest.model_validate(document)
    except ValidationError as invalid:
        first = invalid.errors()[0]
        raise api_refusals.invalid_args(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from invalid
    if not request.image and not request.template_hash_id:
        raise api_refusals.invalid_args("image or template_hash_id is required")
    if len(request.onstart or "") + len(request.args_str or "") + sum(map(len, request.args or [])) > _SCRIPT_LIMIT:
        raise api_refusals.invalid_args(f"onstart and args together are longer than {_SCRIPT_LIMIT} characters")
    if isinstance(request.env, dict) and len(str(request.env)) > _ENVIRONMENT_LIMIT:
        raise api_refusals.invalid_args("env is too long")
    return request


def rent(cloud: Cloud, identity: Identity, ask_id: int, request: CreateRequest) -> Instance:
    """Rent this ask. Raises the service's refusals, some of which include a new contract."""
    account = cloud.account(identity)
    if cloud.credit(account.id) <= 0:
        raise api_refusals.insufficient_credit()
    bid = from_dollars(request.price) if request.price is not None else None
    if bid is not None and not 1_000 <= bid <= 128_000_000:
        raise api_refusals.invalid_price("price must be between 0.001 and 128")
    offer = _offer(cloud, ask_id)
    instance = _contract(cloud, account.id, offer, request, bid)
    refused = cloud.take_fault(FaultKind.ERROR_WITH_CONTRACT, "create", instance)
    if refused or (bid is not None and bid < offer.min_bid_usd_per_hour):
        stopped = instance.went_down(cloud.now(), message="")
        cloud.records.put_instance(stopped)
        raise api_refusals.ApiRefusal(
            400, "invalid_price", "bid is below the current minimum", new_contract=instance.id, ask_id=ask_id
        )
    log.info("machine.rented", instance=instance.id, label=request.label, gpu=offer.gpu.name)
    return instance


async def destroy(cloud: Cloud, identity: Identity, instance_id: int) -> None:
    """Destroy the instance before returning, unless a fault prevents it."""
    instance = cloud.instance(identity, instance_id)
    if cloud.take_fault(FaultKind.LYING_DESTROY, "destroy", instance):
        return
    slow = cloud.take_fault(FaultKind.SLOW_DESTROY, "destroy", instance)
    if slow:
        cloud.update(instance_id, destroy_at=cloud.now() + slow.seconds)
    elif instance.destroy_at is None:
        await destroy_now(cloud, instance_id)


async def destroy_now(cloud: Cloud, instance_id: int) -> None:
    async with cloud.lock(instance_id):
        instance = cloud.records.instances[instance_id]
        if not instance.exists:
            return
        await cloud.note_traffic(instance_id)
        await cloud.machines.destroy(instance_id)
        now = cloud.now()
        instance = cloud.records.instances[instance_id].stopped_billing(now)
        cloud.records.put_instance(replace(instance, destroyed_at=now, actual=None, running_since=None))
    log.info("machine.destroyed", instance=instance_id, label=instance.order.label)


def start(cloud: Cloud, identity: Identity, instance_id: int) -> str | None:
    """Start the instance; returns a warning if the start is only queued."""
    instance = cloud.instance(identity, instance_id)
    if cloud.credit(instance.account_id) <= 0:
        raise api_refusals.ApiRefusal(400, "missing_billing", "Your account lacks credit; see the billing page.")
    if cloud.now() >= instance.end_at:
        raise api_refusals.invalid_args("the contract has ended")
    if instance.wanted is WantedState.RUNNING or instance.actual is ActualStatus.OFFLINE:
        cloud.update(instance_id, wanted=WantedState.RUNNING)
        return None
    fault = cloud.take_fault(FaultKind.START_QUEUED, "start", instance)
    taken_seconds = max(fault.seconds if fault else 0.0, instance.outbid_until - cloud.now())
    queued = taken_seconds > 0
    cloud.update(
        instance_id,
        wanted=WantedState.RUNNING,
        scheduled=WantedState.RUNNING,
        contract=WantedState.STOPPED if queued else WantedState.RUNNING,
        actual=instance.actual if queued else ActualStatus.LOADING,
        ready_at=cloud.now() + (taken_seconds if queued else cloud.pace.restart_seconds),
        stuck=False,
        status_message=None,
    )
    return QUEUED if queued else None


async def stop(cloud: Cloud, instance_id: int, *, message: str, wanted: WantedState = WantedState.STOPPED) -> None:
    """Stop the instance; only its disk is left, which is still billed."""
    async with cloud.lock(instance_id):
        instance = cloud.records.instances[instance_id]
        if not instance.exists:
            return
        if instance.actual is ActualStatus.RUNNING:
            await cloud.note_traffic(instance_id)
            await cloud.machines.halt(instance_id)
        instance = cloud.records.instances[instance_id]
        cloud.records.put_instance(instance.went_down(cloud.now(), message=message, wanted=wanted))
    log.info("machine.stopped", instance=instance_id, why=message or "asked")


def set_label(cloud: Cloud, identity: Identity, instance_id: int, label: str) -> None:
    instance = cloud.instance(identity, instance_id)
    if len(label) > 1024:
        raise api_refusals.ApiRefusal(400, "label_too_long", "label is longer than 1024 characters")
    cloud.update(instance_id, order=replace(instance.order, label=label))


async def set_bid(cloud: Cloud, identity: Identity, instance_id: int, price: float | None) -> None:
    """Change the bid; a winning bid starts a machine that was outbid, one below the minimum stops it."""
    instance = cloud.instance(identity, instance_id)
    minimum = instance.offer.min_bid_usd_per_hour
    bid = minimum if price is None else from_dollars(price)
    if not 1_000 <= bid <= 32_000_000 * instance.offer.num_gpus:
        raise api_refusals.invalid_price("price is out of range")
    cloud.records.put_instance(instance.bidding(bid, cloud.now()))
    if bid < minimum and instance.wanted is WantedState.RUNNING:
        await stop(cloud, instance_id, message="outbid")
    elif bid >= minimum and instance.wanted is WantedState.STOPPED:
        cloud.update(instance_id, outbid_until=0.0)
        start(cloud, identity, instance_id)


async def reboot(cloud: Cloud, identity: Identity, instance_id: int, *, fresh: bool) -> None:
    """Stop and start the instance; with `fresh` the container is recreated and its content is lost."""
    instance = cloud.instance(identity, instance_id)
    await stop(cloud, instance_id, message="rebooting", wanted=WantedState.RUNNING)
    if fresh:
        await cloud.machines.destroy(instance.id)
    cloud.update(
        instance_id,
        actual=ActualStatus.LOADING,
        contract=WantedState.RUNNING,
        ready_at=cloud.now() + cloud.pace.restart_seconds,
    )


def _offer(cloud: Cloud, ask_id: int) -> MarketOffer:
    gone = cloud.take_fault(FaultKind.OFFER_GONE, "create")
    if gone and gone.status == 404:
        raise api_refusals.unknown_ask(ask_id)
    if gone:
        raise api_refusals.ask_taken(ask_id, status=gone.status or 410)
    for offer in cloud.offers():
        if offer.ask_id == ask_id:
            return offer
    raise api_refusals.ask_taken(ask_id) if cloud.market.has_machine_of(ask_id) else api_refusals.unknown_ask(ask_id)


def _contract(
    cloud: Cloud, account_id: int, offer: MarketOffer, request: CreateRequest, bid: MicroDollars | None
) -> Instance:
    now = cloud.now()
    instance_id = cloud.next_instance_id()
    wanted = WantedState.STOPPED if request.target_state == "stopped" else WantedState.RUNNING
    instance = Instance(
        id=instance_id,
        account_id=account_id,
        offer=offer,
        order=InstanceOrder(
            image=request.image or f"template/{request.template_hash_id}",
            label=request.label,
            disk_gb=request.disk,
            environment=_environment(request.env),
            onstart=request.onstart,
            runtype=request.runtype or "ssh_proxy",
            bid_usd_per_hour=bid,
        ),
        api_key=cloud.secret(),
        # Not from the seed: two simulators with the same seed would kill each other's processes.
        marker=f"{instance_id}-{secrets.token_hex(6)}",
        created_at=now,
        end_at=now + offer.contract_seconds,
        ready_at=now + cloud.pace.created_seconds + cloud.pace.loading_seconds,
        wanted=wanted,
        contract=wanted,
        scheduled=wanted,
        ssh_keys=cloud.records.accounts[account_id].ssh_keys,
    )
    hidden = cloud.take_fault(FaultKind.LIST_LAG, "create", instance)
    never = cloud.take_fault(FaultKind.NEVER_READY, "create", instance)
    instance = replace(
        instance,
        hidden_until=now + hidden.seconds if hidden else 0.0,
        stuck=never is not None,
        status_message=never.message if never else None,
    )
    cloud.records.put_instance(instance)
    return instance


def _environment(env: dict[str, Any] | str | None) -> tuple[tuple[str, str], ...]:
    # According to the guide a string is ignored; every client sends an object.
    return tuple((name, str(value)) for name, value in env.items()) if isinstance(env, dict) else ()
