"""Every answer of the simulator has the shape that the reference gives it, in each state of an instance's life."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import TypeAdapter

from stationmaster.simulator.cloud import Pace
from stationmaster.simulator.harness import simulator_thread
from tests.support.vast import vast_shapes as shapes
from tests.support.vast.simulated_vast import API_KEY, Customer, quick_settings
from tests.support.waiting import until

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHZlcnkgbXVjaCBhIHB1YmxpYyBrZXkgZm9yIHRlc3Q me"


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Customer]:
    """A simulator on paper whose machines take a minute of its clock, which stands still, for each phase."""
    pace = Pace(created_seconds=60, loading_seconds=60, restart_seconds=60, ssh_seconds=0, log_seconds=0)
    settings = quick_settings(tmp_path / "sim", backend="paper", pace=pace, clock_speed=0.0)
    with simulator_thread(settings) as url:
        customer = Customer(url)
        yield customer
        customer.close()


def test_offers_whatever_way_they_are_searched(slow: Customer) -> None:
    http, query = slow.http, {"num_gpus": {"eq": "1"}, "order": [["dph_total", "asc"]], "limit": 500}
    posted = http.post("/api/v0/bundles/", json=query).json()
    shapes.Offers.model_validate(posted)
    assert len(posted["offers"]) <= 64
    assert http.get("/api/v0/bundles", params={"q": json.dumps(query)}).json() == posted
    assert http.put("/api/v0/search/asks/", json={"select_cols": ["*"], "q": query}).json() == posted
    query |= {"gpu_name": {"eq": "RTX 4090"}}
    firm = http.post("/api/v0/bundles/", json=query).json()
    bids = http.post("/api/v0/bundles/", json=query | {"type": "bid"}).json()
    shapes.Offers.model_validate(bids)
    assert {offer["id"] for offer in bids["offers"]} == {offer["id"] for offer in firm["offers"]}
    assert all(offer["is_bid"] and offer["dph_base"] == offer["min_bid"] for offer in bids["offers"])


def test_an_instance_in_every_state_of_its_life(slow: Customer) -> None:
    created = slow.create(label="job-a", env={"A": "1"}, onstart="echo")
    shapes.Created.model_validate(created.json())
    instance_id = created.json()["new_contract"]
    seen = []
    for advance in (0, 60, 60):
        slow.advance(advance)
        shown = until(lambda: slow.read(instance_id))
        shapes.OneInstance.model_validate({"instances": shown})
        seen.append(shown["actual_status"])
        if shown["actual_status"] != "running":
            assert shown["ports"] is None
    slow.wait_for(instance_id, "running")
    shapes.OneInstance.model_validate({"instances": slow.read(instance_id)})
    assert seen[0] is None
    assert seen[1] in ("created", "loading")
    shapes.Done.model_validate(slow.put(instance_id, state="stopped").json())
    stopped = slow.read(instance_id)
    shapes.OneInstance.model_validate({"instances": stopped})
    assert stopped is not None
    assert stopped["actual_status"] == "exited"
    shapes.Done.model_validate(slow.destroy(instance_id).json())
    assert slow.http.get(f"/api/v0/instances/{instance_id}/").json() == {"instances": None}
    again = slow.destroy(instance_id)
    assert again.status_code == 404
    assert shapes.Refused.model_validate(again.json()).error == "no_such_instance"


def test_pages_of_the_list_are_followed_to_the_end(slow: Customer) -> None:
    rented = {slow.rent(label="a" if number % 2 else None) for number in range(30)}
    first = slow.listing()
    shapes.InstancePage.model_validate(first)
    assert (first["instances_found"], first["total_instances"]) == (25, 30)
    assert first["label_counts"] == {"a": 15, "": 15}
    second = slow.listing(after_token=json.dumps(first["next_token"]))
    shapes.InstancePage.model_validate(second)
    assert second["next_token"] is None
    shown = [instance["id"] for instance in first["instances"] + second["instances"]]
    assert shown == sorted(rented)
    assert slow.listing(limit="0")["instances_found"] == 5
    labelled = slow.listing(select_filters='{"label": {"eq": "a"}}', select_cols='["id", "label", "no_such"]')
    assert labelled["total_instances"] == 15
    assert labelled["instances"][0] == {"id": labelled["instances"][0]["id"], "label": "a", "no_such": None}
    found = slow.http.post("/api/v0/contracts/fetch/", json={"label": "a"}).json()["contracts"]
    assert len(TypeAdapter(list[shapes.Instance]).validate_python(found)) == 15
    shapes.Filters.model_validate(slow.http.get("/api/v0/instances/filters/").json())


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ({"after_token": "nonsense"}, "invalid_token"),
        ({"select_filters": '{"dph_total": {"lt": 1}}'}, "invalid_request"),
        ({"select_filters": "nonsense"}, "invalid_request"),
        ({"select_filters": '{"label": {"resembles": "a"}}'}, "invalid_request"),
    ],
)
def test_a_list_asked_for_wrongly_is_refused(slow: Customer, query: dict[str, str], error: str) -> None:
    slow.rent()
    answer = slow.http.get("/api/v1/instances/", params=query)
    assert (answer.status_code, shapes.Refused.model_validate(answer.json()).error) == (400, error)


def test_the_old_list_is_dead_and_says_so(slow: Customer) -> None:
    answer = slow.http.get("/api/v0/instances/")
    assert answer.status_code == 410
    assert shapes.Refused.model_validate(answer.json()).error == "deprecated_endpoint"


def test_keys_of_account_and_instance(slow: Customer) -> None:
    http = slow.http
    assert http.get("/api/v0/ssh/").status_code == 404
    added = shapes.KeyAdded.model_validate(http.post("/api/v0/ssh/", json={"ssh_key": KEY}).json())
    listed = TypeAdapter(list[shapes.AccountKey]).validate_python(http.get("/api/v0/ssh/").json())
    assert [(key.id, key.key) for key in listed] == [(added.key.id, KEY)]
    instance_id = slow.rent()
    held = shapes.InstanceKeys.model_validate(http.get(f"/api/v0/instances/{instance_id}/ssh/").json())
    assert [key["key"] for key in json.loads(held.ssh_keys)] == [KEY]
    path = f"/api/v0/instances/{instance_id}/ssh/"
    other = shapes.KeyAdded.model_validate(http.post(path, json={"ssh_key": KEY + "2"}).json())
    shapes.Done.model_validate(http.delete(f"{path}{other.key.id}/").json())
    shapes.Done.model_validate(http.delete(f"/api/v0/ssh/{added.key.id}/").json())
    gone = http.delete(f"/api/v0/ssh/{added.key.id}/")
    assert (gone.status_code, shapes.Refused.model_validate(gone.json()).error) == (400, "no_ssh_key")


def test_user_charges_and_logs(slow: Customer) -> None:
    instance_id = slow.rent(label="job-a")
    slow.advance(120)
    slow.wait_for(instance_id, "running")
    slow.advance(3600)
    shapes.User.model_validate(slow.http.get("/api/v0/users/current").json())
    answer = slow.http.get(
        "/api/v0/charges/", params={"select_filters": '{"day": {"gte": 0, "lte": 9e9}, "type": {"in": ["instance"]}}'}
    )
    charges = shapes.Charges.model_validate(answer.json())
    assert {charge.source for charge in charges.results} == {f"instance-{instance_id}"}
    assert {charge.metadata.label for charge in charges.results} == {"job-a"}
    assert slow.http.get("/api/v0/charges/").status_code == 400
    asked = slow.http.put(f"/api/v0/instances/request_logs/{instance_id}/", json={"tail": "5"})
    requested = shapes.LogRequested.model_validate(asked.json())
    assert httpx.get(requested.result_url, verify=False).text == f"machine {instance_id} is up\n"


@pytest.mark.parametrize(
    ("fields", "status", "error"),
    [
        ({"offer_id": 1}, 404, "invalid_args"),
        ({"image": None}, 400, "invalid_args"),
        ({"onstart": "x" * 4097}, 400, "invalid_args"),
        ({"label": "x" * 257}, 400, "invalid_args"),
        ({"price": 0.0001}, 400, "invalid_price"),
    ],
)
def test_a_create_that_cannot_be_is_refused(slow: Customer, fields: dict[str, Any], status: int, error: str) -> None:
    answer = slow.create(**fields)
    assert (answer.status_code, shapes.Refused.model_validate(answer.json()).error) == (status, error)
    assert slow.listed() == set()


def test_a_bid_below_the_minimum_is_an_error_that_rented_a_stopped_machine(slow: Customer) -> None:
    offer = slow.offers(type="bid")[0]
    answer = slow.create(offer["id"], price=round(offer["min_bid"] * 0.9, 4))
    refused = shapes.RefusedWithContract.model_validate(answer.json())
    assert answer.status_code == 400
    held = slow.read(refused.new_contract)
    assert held is not None
    assert held["intended_status"] == held["cur_state"] == held["next_state"] == "stopped"
    slow.advance(3600)
    assert slow.truth(refused.new_contract)["cost"]["disk"] > 0


def test_an_ask_is_single_use_and_its_machine_is_listed_again_under_another_id(slow: Customer) -> None:
    offer = slow.offers()[0]
    instance_id = slow.rent(offer["id"])
    again = slow.create(offer["id"])
    assert (again.status_code, again.json()["error"]) == (410, "no_such_ask")
    slow.destroy(instance_id)
    relisted = [other for other in slow.offers() if other["machine_id"] == offer["machine_id"]]
    assert [other["id"] for other in relisted] == [offer["id"] + 1]


def test_keys_open_what_is_theirs_alone(slow: Customer) -> None:
    mine = slow.create(label="mine").json()
    other_id = slow.rent(label="other")
    slow.http.post("/simulator/accounts", json={"name": "second", "api_key": "second-key", "credit": 5})
    stranger, inside = Customer(slow.url, "second-key"), Customer(slow.url, mine["instance_api_key"])
    try:
        assert stranger.listed() == set()
        assert stranger.read(mine["new_contract"]) is None
        assert stranger.destroy(mine["new_contract"]).status_code == 404
        assert inside.read(mine["new_contract"]) is not None
        assert inside.listed() == {mine["new_contract"]}
        assert inside.destroy(other_id).status_code == 403
        assert inside.create(1).status_code == 403
        assert inside.http.get("/api/v0/users/current").status_code == 403
        assert inside.put(mine["new_contract"], state="stopped").json() == {"success": True}
        assert inside.destroy(mine["new_contract"]).json() == {"success": True}
        nobody = Customer(slow.url, "nobody")
        assert (nobody.http.get("/api/v1/instances/").status_code) == 401
        nobody.close()
        assert slow.listed() == {other_id}
        assert slow.http.get("/api/v1/instances/", headers={"Authorization": ""}).status_code == 403
    finally:
        stranger.close()
        inside.close()


def test_too_many_requests_come_in_each_shape(tmp_path: Path) -> None:
    settings = quick_settings(tmp_path / "sim", backend="paper", rate_limit_scale=100.0)
    with simulator_thread(settings) as url:
        customer = Customer(url, API_KEY)
        assert customer.http.get("/api/v1/instances/").status_code == 200
        refused = [customer.http.get("/api/v1/instances/") for _ in range(3)]
        customer.close()
    assert [answer.status_code for answer in refused] == [429, 429, 429]
    kinds = {answer.headers["content-type"].split(";")[0] + str(sorted(_keys(answer.text))) for answer in refused}
    assert kinds == {"text/plain[]", "application/json['detail']", "application/json['error', 'msg', 'success']"}


def _keys(text: str) -> list[str]:
    return list(json.loads(text)) if text.startswith("{") else []
