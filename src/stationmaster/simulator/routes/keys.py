"""Routes for SSH keys: those of the account, which new instances get, and those of one instance."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from fastapi import APIRouter

from stationmaster.simulator import api_refusals
from stationmaster.simulator.cloud import Cloud
from stationmaster.simulator.instances import Instance, SshKey
from stationmaster.simulator.json_rows import ssh_key_row
from stationmaster.simulator.routes.caller import Caller, CloudDep, Document

router = APIRouter()


@router.get("/api/v0/ssh")
async def show_keys(cloud: CloudDep, caller: Caller) -> list[dict[str, Any]]:
    account = cloud.account(caller)
    if not account.ssh_keys:
        raise api_refusals.ApiRefusal(404, "no_ssh_keys", "No SSH keys found.")
    return [ssh_key_row(key, account_id=account.id) for key in account.ssh_keys]


@router.post("/api/v0/ssh")
async def add_key(cloud: CloudDep, caller: Caller, document: Document) -> dict[str, Any]:
    account = cloud.account(caller)
    key = _new_key(cloud, document)
    cloud.records.put_account(account.with_key(key))
    return {"success": True, "key": _answer(key, account.id)}


@router.put("/api/v0/ssh/{key_id}")
async def change_key(cloud: CloudDep, caller: Caller, key_id: int, document: Document) -> dict[str, Any]:
    account = cloud.account(caller)
    if all(key.id != key_id for key in account.ssh_keys):
        raise api_refusals.ApiRefusal(400, "no_ssh_key", f"SSH key {key_id} does not exist.")
    key = replace(_new_key(cloud, document), id=key_id)
    cloud.records.put_account(account.with_key(key))
    return {"success": True, "key": _answer(key, account.id)}


@router.delete("/api/v0/ssh/{key_id}")
async def delete_key(cloud: CloudDep, caller: Caller, key_id: int) -> dict[str, Any]:
    account = cloud.account(caller)
    if all(key.id != key_id for key in account.ssh_keys):
        raise api_refusals.ApiRefusal(400, "no_ssh_key", f"SSH key {key_id} does not exist.")
    cloud.records.put_account(account.without_key(key_id))
    return {"success": True}


@router.get("/api/v0/instances/{instance_id}/ssh")
async def show_instance_keys(cloud: CloudDep, caller: Caller, instance_id: int) -> dict[str, Any]:
    instance = cloud.instance(caller, instance_id)
    rows = [ssh_key_row(key, account_id=instance.account_id) for key in instance.ssh_keys]
    return {"success": True, "ssh_keys": json.dumps(rows)}


@router.post("/api/v0/instances/{instance_id}/ssh")
async def attach_key(cloud: CloudDep, caller: Caller, instance_id: int, document: Document) -> dict[str, Any]:
    instance = cloud.instance(caller, instance_id)
    key = _new_key(cloud, document)
    others = tuple(known for known in instance.ssh_keys if known.text != key.text)
    await _set_keys(cloud, instance, (*others, key))
    return {"success": True, "key": _answer(key, instance.account_id)}


@router.delete("/api/v0/instances/{instance_id}/ssh/{key_id}")
async def detach_key(cloud: CloudDep, caller: Caller, instance_id: int, key_id: int) -> dict[str, Any]:
    instance = cloud.instance(caller, instance_id)
    await _set_keys(cloud, instance, tuple(key for key in instance.ssh_keys if key.id != key_id))
    return {"success": True}


def _new_key(cloud: Cloud, document: dict[str, Any]) -> SshKey:
    text = str(document.get("ssh_key") or "").strip()
    if not text.startswith(("ssh-", "ecdsa-", "sk-")) or len(text.split()) < 2:
        raise api_refusals.invalid_args("ssh_key is not a public key")
    return SshKey(id=cloud.next_key_id(), text=text, created_at=cloud.now())


def _answer(key: SshKey, account_id: int) -> dict[str, Any]:
    """The answer to a change has `public_key` where the list has `key`."""
    return {"id": key.id, "user_id": account_id, "public_key": key.text, "created_at": key.created_at}


async def _set_keys(cloud: Cloud, instance: Instance, keys: tuple[SshKey, ...]) -> None:
    cloud.update(instance.id, ssh_keys=keys)
    if instance.running_since is not None:
        await cloud.machines.authorize(instance.id, tuple(key.text for key in keys))
