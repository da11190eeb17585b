"""A storm of every fault at once: the simulator itself stays whole, and its books balance."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import closing
from pathlib import Path

import httpx

from stationmaster.simulator.faults import FaultKind, storm
from stationmaster.simulator.harness import simulator_thread
from tests.support.vast.simulated_vast import Customer, quick_settings
from tests.support.waiting import until


def test_every_fault_strikes_and_the_books_balance(tmp_path: Path) -> None:
    faults = storm(7, seconds=60.0, every_seconds=(0.3, 0.6), fault_seconds=0.2)
    settings = quick_settings(tmp_path / "sim", faults=tuple(faults), clock_speed=20.0)
    with simulator_thread(settings) as url, closing(Customer(url)) as customer:
        customer.http.timeout = httpx.Timeout(5)
        draw = random.Random(1)
        missing = set(FaultKind)
        for _ in range(3000):
            if not missing:
                break
            _one_move(customer, draw)
            missing -= _kinds(customer)
        assert missing == set()
        customer.http.delete("/simulator/faults")
        until(lambda: _destroy_everything(customer))
        state = customer.http.get("/simulator/state").json()
        charges = customer.charges()
    assert all(not instance["exists"] and not instance["processes"] for instance in state["instances"])
    billed: Counter[str] = Counter()
    for charge in charges:
        billed[charge["source"]] += round(charge["amount"] * 1e6)
    spent = {f"instance-{instance['id']}": round(instance["cost"]["total"] * 1e6) for instance in state["instances"]}
    assert billed == Counter(spent)


def _one_move(customer: Customer, draw: random.Random) -> None:
    """Something that a customer might do, whatever comes back; the account is kept in credit."""
    try:
        if customer.credit() < 5:
            customer.http.post("/simulator/accounts", json={"api_key": customer.key, "credit": 20})
        listed = customer.listing().get("instances", [])
        if len(listed) < 3:
            offer = draw.choice(customer.offers(type="bid"))
            customer.create(offer["id"], label="sm-storm", price=draw.choice([None, offer["min_bid"] + 0.01]))
            return
        instance_id = draw.choice(listed)["id"]
        match draw.randrange(4):
            case 0:
                customer.destroy(instance_id)
            case 1:
                customer.put(instance_id, state="stopped")
                customer.put(instance_id, state="running")
            case _:
                customer.read(instance_id)
    except (httpx.HTTPError, ValueError, KeyError):
        pass  # that is what the storm is for


def _kinds(customer: Customer) -> set[str]:
    return {strike["kind"] for strike in customer.http.get("/simulator/faults").json()["struck"]}


def _destroy_everything(customer: Customer) -> bool:
    for instance_id in customer.listed():
        customer.destroy(instance_id)
    return not customer.listed()
