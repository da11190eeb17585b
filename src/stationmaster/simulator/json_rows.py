"""Builds the service's JSON rows, field by field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stationmaster.money import MicroDollars
from stationmaster.simulator.accounts import Account
from stationmaster.simulator.billing import InstanceCharge
from stationmaster.simulator.instances import Instance, SshKey, WantedState
from stationmaster.simulator.market import MarketOffer


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineTelemetry:
    """A machine's last report; all None before the first."""

    gpu_percent: float | None = None
    gpu_celsius: float | None = None
    gpu_memory_gb: float | None = None
    memory_gb: float | None = None
    disk_used_gb: float | None = None


def offer_row(offer: MarketOffer, *, storage_gb: float, now: float, is_bid: bool) -> dict[str, Any]:
    """One row of `offers`, priced with `storage_gb` of disk."""
    disk = offer.disk_usd_per_hour(storage_gb)
    rate = offer.min_bid_usd_per_hour if is_bid else offer.gpu_usd_per_hour
    total = dollars(MicroDollars(rate + disk))
    performance = offer.gpu.performance * offer.num_gpus
    return _host_fields(offer) | {
        "id": offer.ask_id,
        "ask_contract_id": offer.ask_id,
        "verified": offer.verified,
        "external": False,
        "rentable": True,
        "rented": False,
        "is_bid": is_bid,
        "hosting_type": int(offer.datacenter),
        "datacenter": offer.datacenter,
        "static_ip": offer.static_ip,
        "disk_space": offer.disk_gb,
        "dph_base": dollars(rate),
        "dph_total": total,
        "storage_total_cost": dollars(disk),
        "dlperf": performance,
        "dlperf_per_dphtotal": round(performance / total, 2),
        "flops_per_dphtotal": round(performance / total, 2),
        "total_flops": performance,
        "score": round(performance * offer.reliability * 2, 1),
        "start_date": now,
        "end_date": now + offer.contract_seconds,
        "duration": offer.contract_seconds,
        "search": _price_fields(rate, disk),
    }


def instance_row(instance: Instance, *, now: float, telemetry: MachineTelemetry) -> dict[str, Any]:
    """One instance as the list and the single read show it."""
    offer, order, address = instance.offer, instance.order, instance.address
    running = instance.running_since is not None
    gpu, disk = instance.gpu_usd_per_hour, instance.disk_usd_per_hour
    return _host_fields(offer) | {
        "id": instance.id,
        "label": order.label,
        "actual_status": instance.shown_status(now),
        "intended_status": instance.wanted,
        "cur_state": instance.contract,
        "next_state": instance.scheduled,
        "status_msg": instance.status_message,
        "is_bid": order.bid_usd_per_hour is not None,
        "image_uuid": order.image,
        "image_runtype": order.runtype,
        "image_args": [],
        "extra_env": [list(pair) for pair in order.environment],
        "onstart": order.onstart,
        "template_id": None,
        "template_hash_id": None,
        "jupyter_token": "",
        "ssh_host": address.proxy_host if address else None,
        "ssh_idx": "5",
        "ssh_port": address.proxy_port if address else None,
        "machine_dir_ssh_port": address.direct_port if address else None,
        # The live service sends stray white space here, which clients must strip.
        "public_ipaddr": f"{address.direct_host}\n" if address else None,
        "local_ipaddrs": "127.0.0.1 \n",
        "direct_port_start": address.direct_port if address else -1,
        "direct_port_end": address.direct_port if address else -1,
        "ports": _ports(instance) if running else None,
        "start_date": instance.created_at,
        "end_date": instance.end_at,
        "duration": instance.end_at - now,
        "uptime_mins": (now - instance.running_since) / 60 if instance.running_since is not None else None,
        "time_remaining": "",
        "gpu_util": telemetry.gpu_percent,
        "gpu_temp": telemetry.gpu_celsius,
        "vmem_usage": telemetry.gpu_memory_gb,
        "mem_usage": telemetry.memory_gb,
        "mem_limit": round(offer.cpu_ram_mb * _share(offer) / 1000, 1),
        "cpu_util": (telemetry.gpu_percent or 0.0) / 100,
        "disk_space": order.disk_gb,
        "disk_usage": telemetry.disk_used_gb if telemetry.disk_used_gb is not None else -1,
        "disk_util": telemetry.disk_used_gb / order.disk_gb if telemetry.disk_used_gb is not None else -1,
        "dph_base": dollars(gpu),
        "dph_total": dollars(MicroDollars(gpu + disk)),
        "storage_total_cost": dollars(disk),
        "search": _price_fields(gpu, disk),
        "instance": _price_fields(gpu if running else MicroDollars(0), disk),
        "credit_balance": None,
        "country_code": None,
        "volume_info": [],
    }


def user_row(account: Account, *, credit: MicroDollars) -> dict[str, Any]:
    return {
        "id": account.id,
        "username": account.name,
        "email": f"{account.name}@example.com",
        "credit": dollars(credit),
        "balance": 0,
        "balance_threshold": 0,
        "can_pay": True,
        "has_billing": True,
        "ssh_key": account.ssh_keys[-1].text if account.ssh_keys else None,
        "host_agreement_accepted": False,
    }


def charge_row(charge: InstanceCharge) -> dict[str, Any]:
    parts = (("gpu", charge.gpu), ("disk", charge.disk), ("bwd", charge.downloads), ("bwu", charge.uploads))
    return {
        "start": charge.start,
        "end": charge.end,
        "type": "instance",
        "source": f"instance-{charge.instance_id}",
        "description": f"Instance {charge.instance_id} {charge.gpu_name}",
        "amount": dollars(charge.total),
        "metadata": {"label": charge.label},
        "items": [{"type": kind, "amount": dollars(amount)} for kind, amount in parts if amount or kind == "disk"],
    }


def ssh_key_row(key: SshKey, *, account_id: int) -> dict[str, Any]:
    return {"id": key.id, "user_id": account_id, "key": key.text, "created_at": key.created_at, "deleted_at": None}


def dollars(amount: MicroDollars) -> float:
    return amount / 1_000_000


def _host_fields(offer: MarketOffer) -> dict[str, Any]:
    return {
        "machine_id": offer.machine_id,
        "host_id": offer.host_id,
        "bundle_id": offer.machine_id * 10,
        "gpu_name": offer.gpu.name,
        "num_gpus": offer.num_gpus,
        "gpu_ram": offer.gpu.memory_mb,
        "gpu_total_ram": offer.gpu.memory_mb * offer.num_gpus,
        "gpu_totalram": offer.gpu.memory_mb * offer.num_gpus,
        "gpu_frac": _share(offer),
        "gpu_arch": "nvidia",
        "gpu_display_active": False,
        "gpu_max_power": 350.0,
        "gpu_max_temp": 90.0,
        "gpu_mem_bw": 900.0,
        "compute_cap": offer.gpu.compute_capability,
        "cuda_max_good": offer.cuda,
        "driver_version": offer.driver_version,
        "cpu_arch": "amd64",
        "cpu_cores": offer.cpu_cores,
        "cpu_cores_effective": offer.cpu_cores * _share(offer),
        "cpu_ghz": 3.4,
        "cpu_ram": offer.cpu_ram_mb,
        "has_avx": 1,
        "disk_bw": offer.disk_bandwidth,
        "pcie_bw": 24.0,
        "pci_gen": 4.0,
        "inet_down": offer.down_mbps,
        "inet_up": offer.up_mbps,
        "inet_down_cost": dollars(offer.traffic_usd_per_gb),
        "inet_up_cost": dollars(offer.traffic_usd_per_gb),
        "storage_cost": dollars(offer.storage_usd_per_gb_month),
        "direct_port_count": offer.ports,
        "geolocation": offer.place,
        "reliability": offer.reliability,
        "reliability2": offer.reliability,
        "verification": "verified" if offer.verified else "unverified",
        "min_bid": dollars(offer.min_bid_usd_per_hour),
        "ubuntu_version": "22.04",
        "vms_enabled": False,
        "public_ipaddr": "127.0.0.1",
    }


def _price_fields(gpu: MicroDollars, disk: MicroDollars) -> dict[str, float]:
    total = dollars(MicroDollars(gpu + disk))
    return {
        "gpuCostPerHour": dollars(gpu),
        "diskHour": dollars(disk),
        "totalHour": total,
        "discountTotalHour": 0,
        "discountedTotalPerHour": total,
    }


def _share(offer: MarketOffer) -> float:
    return offer.num_gpus / offer.gpus_in_machine


def _ports(instance: Instance) -> dict[str, list[dict[str, str]]]:
    """The machine's direct ports; only a `direct` run type has one for SSH."""
    if instance.address is None or "direc" not in instance.order.runtype or instance.wanted is not WantedState.RUNNING:
        return {}
    return {"22/tcp": [{"HostIp": "0.0.0.0", "HostPort": str(instance.address.direct_port)}]}
