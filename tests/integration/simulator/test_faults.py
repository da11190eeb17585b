"""Every fault does what it says, to the API's answers or to a real machine."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncssh
import httpx
import pytest

from stationmaster.simulator.harness import simulator_thread
from tests.support.vast.simulated_vast import Customer, quick_settings
from tests.support.waiting import until


@pytest.fixture(scope="module")
def paper_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = quick_settings(tmp_path_factory.mktemp("paper"), backend="paper", clock_speed=0.0)
    with simulator_thread(settings) as url:
        yield url


@pytest.fixture
def paper(paper_url: str) -> Iterator[Customer]:
    """A customer with an account of its own, on machines without hosts and a clock that is moved by hand."""
    key = secrets.token_hex(8)
    customer = Customer(paper_url, key)
    customer.http.post("/simulator/accounts", json={"api_key": key, "credit": 100})
    yield customer
    customer.http.delete("/simulator/faults")
    for instance_id in customer.listed():
        customer.destroy(instance_id)
    customer.close()


# Faults that a request meets.


def test_slow_create_answers_late(paper: Customer) -> None:
    paper.arm("slow_answer", operation="create", seconds=90)
    offer_id = paper.offers()[0]["id"]
    with pytest.raises(httpx.ReadTimeout):
        paper.http.put(f"/api/v0/asks/{offer_id}/", json={"image": "x"}, timeout=0.3)
    assert len(paper.listed()) == 1


def test_a_simulator_that_closes_leaves_no_connection_open(tmp_path: Path) -> None:
    """Also none that came while it was closing: what nobody closes is found by a later test, and blamed on it."""
    clients: list[socket.socket] = []

    def come_and_stay(address: tuple[str, int]) -> None:
        with contextlib.suppress(OSError):  # until nobody listens any more
            while True:
                clients.append(socket.create_connection(address, timeout=60))
                if len(clients) > 100:
                    clients.pop(0).close()

    with simulator_thread(quick_settings(tmp_path, backend="paper", clock_speed=0.0)) as url:
        address = httpx.URL(url)
        coming = threading.Thread(target=come_and_stay, args=[(address.host, address.port)])
        coming.start()
        until(lambda: clients)
    coming.join()
    for client in clients:
        with client, contextlib.suppress(ConnectionResetError):
            assert client.recv(1) == b""


@pytest.mark.parametrize("status", [404, 410, 400])
def test_offer_gone_rents_nothing(paper: Customer, status: int) -> None:
    paper.arm("offer_gone", status=status)
    answer = paper.create()
    assert (answer.status_code, "no_such_ask" in answer.text) == (status, True)
    assert paper.listed() == set()


def test_lost_answer_has_rented_all_the_same(paper: Customer) -> None:
    paper.arm("lost_answer", operation="create")
    with pytest.raises(httpx.RemoteProtocolError):
        paper.create(label="sm-x")
    assert [row["label"] for row in paper.listing()["instances"]] == ["sm-x"]
    assert paper.struck("lost_answer")[0]["label"] == "sm-x"


def test_server_error_before_and_after_the_effect(paper: Customer) -> None:
    paper.arm("server_error", operation="create", status=503)
    assert paper.create().status_code == 503
    assert paper.listed() == set()
    paper.arm("server_error", operation="create", status=504, after_effect=True)
    assert paper.create().status_code == 504
    assert len(paper.listed()) == 1


@pytest.mark.parametrize(
    ("shape", "seen"),
    [
        ("text", "API requests too frequent"),
        ("detail", '"detail"'),
        ("common", "rate_limit_exceeded"),
        ("retry_after", '"retry_after": 7'),
        ("search_quota", "search_quota_exceeded"),
    ],
)
def test_rate_limited_in_each_shape(paper: Customer, shape: str, seen: str) -> None:
    paper.arm("rate_limited", operation="list", shape=shape, seconds=7)
    answer = paper.http.get("/api/v1/instances/")
    assert answer.status_code == 429
    assert seen in answer.text
    assert ("retry-after" in answer.headers) == (shape == "retry_after")
    assert paper.http.get("/api/v1/instances/").status_code == 200


@pytest.mark.parametrize("status", [200, 410])
def test_deprecated_list_carries_no_instances(paper: Customer, status: int) -> None:
    paper.rent()
    paper.arm("deprecated_list", status=status)
    answer = paper.http.get("/api/v1/instances/")
    assert (answer.status_code, answer.json()["error"]) == (status, "deprecated_endpoint")
    assert "instances" not in answer.json()
    assert len(paper.listed()) == 1


def test_short_page_disagrees_with_its_total(paper: Customer) -> None:
    for _ in range(3):
        paper.rent()
    paper.arm("short_page")
    answer = paper.listing()
    assert (len(answer["instances"]), answer["total_instances"], answer["next_token"]) == (2, 3, None)


def test_empty_list_says_that_nothing_is_rented(paper: Customer) -> None:
    instance_id = paper.rent()
    paper.arm("empty_list")
    answer = paper.listing()
    assert (answer["instances"], answer["total_instances"]) == ([], 0)
    assert paper.read(instance_id) is not None
    assert paper.listed() == {instance_id}


def test_list_lag_hides_a_new_instance_for_a_while(paper: Customer) -> None:
    paper.arm("list_lag", seconds=60)
    instance_id = paper.rent()
    assert paper.listed() == set()
    assert paper.read(instance_id) is not None
    paper.advance(60)
    assert paper.listed() == {instance_id}


def test_lying_destroy_destroys_nothing_and_the_bill_goes_on(paper: Customer) -> None:
    instance_id = paper.rent_running()["id"]
    paper.arm("lying_destroy")
    assert paper.destroy(instance_id).json() == {"success": True}
    assert paper.listed() == {instance_id}
    paper.advance(3600)
    assert paper.truth(instance_id)["cost"]["gpu"] > 0
    assert paper.destroy(instance_id).json() == {"success": True}
    assert paper.listed() == set()


def test_slow_destroy_takes_its_time_billed(paper: Customer) -> None:
    machine = paper.rent_running()
    instance_id = machine["id"]
    paper.arm("slow_destroy", seconds=300)
    assert paper.destroy(instance_id).json() == {"success": True}
    paper.advance(299)
    assert paper.listed() == {instance_id}
    paper.advance(1)
    assert until(lambda: paper.listed() == set())
    assert paper.truth(instance_id)["cost"]["gpu"] == pytest.approx(300 / 3600 * machine["dph_base"], rel=0.01)


def test_error_with_contract_leaves_a_stopped_machine_that_bills_its_disk(paper: Customer) -> None:
    paper.arm("error_with_contract")
    answer = paper.create()
    assert answer.status_code == 400
    held = paper.read(answer.json()["new_contract"])
    assert held is not None
    assert held["intended_status"] == "stopped"
    paper.advance(3600)
    cost = paper.truth(held["id"])["cost"]
    assert (cost["gpu"], cost["disk"] > 0) == (0, True)


def test_a_queued_start_waits_may_be_cancelled_and_else_runs(paper: Customer) -> None:
    instance_id = paper.rent_running()["id"]
    paper.put(instance_id, state="stopped")
    paper.arm("start_queued", seconds=600, times=2)
    answer = paper.put(instance_id, state="running").json()
    assert answer["success"] is False
    assert "queued" in answer["msg"]
    paper.put(instance_id, state="stopped")
    paper.advance(700)
    assert (paper.read(instance_id) or {})["actual_status"] == "exited"
    paper.put(instance_id, state="running")
    paper.advance(700)
    paper.wait_for(instance_id, "running")


def test_never_ready_stays_loading_with_its_hosts_words(paper: Customer) -> None:
    paper.arm("never_ready", message="OCI runtime create failed: unresolvable CDI devices")
    instance_id = paper.rent()
    paper.wait_for(instance_id, "created")
    paper.advance(100_000)
    shown = paper.read(instance_id)
    assert shown is not None
    assert shown["actual_status"] == "created"
    assert shown["status_msg"].startswith("OCI runtime")
    assert paper.truth(instance_id)["cost"]["gpu"] == 0


def test_credit_gone_stops_everything_and_refuses_more(paper: Customer) -> None:
    machines = [paper.rent_running()["id"] for _ in range(2)]
    paper.arm("credit_gone")
    for instance_id in machines:
        assert paper.wait_for(instance_id, "exited")["intended_status"] == "stopped"
    assert paper.credit() <= 0
    assert paper.create().json()["error"] == "insufficient_credit"
    assert paper.put(machines[0], state="running").json()["error"] == "missing_billing"


def test_credit_runs_out_by_itself(paper: Customer) -> None:
    instance_id = paper.rent_running()["id"]
    paper.http.post("/simulator/accounts", json={"api_key": paper.key, "credit": -99.9})
    paper.advance(24 * 3600)
    assert paper.wait_for(instance_id, "exited")["status_msg"] == "the account is out of credit"


def test_outbid_stops_a_bid_machine_only_and_a_higher_bid_brings_it_back(paper: Customer) -> None:
    firm = paper.rent_running()["id"]
    offer = paper.offers(type="bid")[0]
    bid = paper.wait_for(paper.rent(offer["id"], price=offer["min_bid"] + 0.01), "running")["id"]
    paper.arm("outbid")
    assert paper.wait_for(bid, "exited")["cur_state"] == "stopped"
    assert (paper.read(firm) or {})["actual_status"] == "running"
    changed = paper.http.put(f"/api/v0/instances/bid_price/{bid}/", json={"client_id": "me", "price": 1.5})
    assert changed.json() == {"success": True}
    assert paper.wait_for(bid, "running")["dph_base"] == 1.5


def test_contract_ends_stops_for_good(paper: Customer) -> None:
    instance_id = paper.rent_running()["id"]
    paper.arm("contract_ends")
    ended = paper.wait_for(instance_id, "exited")
    assert ended["duration"] <= 0
    assert paper.put(instance_id, state="running").status_code == 400


# Faults that happen to a real machine.


def test_host_vanishes_with_its_processes(customer: Customer, login: Any) -> None:
    machine = customer.rent_running()
    login.leave_running(machine, "sleep 1000")
    customer.arm("host_vanishes", instance_id=machine["id"])
    customer.wait_for(machine["id"], "offline")
    assert customer.truth(machine["id"])["processes"] == []
    with pytest.raises(OSError):
        login.run(machine, "true")
    assert customer.destroy(machine["id"]).json() == {"success": True}


def test_partition_is_silent_while_the_work_goes_on(customer: Customer, login: Any) -> None:
    machine = customer.rent_running()
    login.leave_running(machine, "while :; do date +%s%N > ~/new; mv ~/new ~/beat; sleep 0.05; done")
    customer.strike("partition", machine["id"])
    with pytest.raises((asyncio.TimeoutError, asyncssh.Error)):
        login.do(machine, _echo, connect_timeout=0.5)
    during = time.time()
    customer.end_strikes()
    assert until(lambda: _answers(login, machine))
    assert until(lambda: int(login.output(machine, "cat ~/beat")) / 1e9 > during)


def test_a_connection_survives_a_short_partition(customer: Customer, login: Any) -> None:
    machine = customer.rent_running()

    async def work(connection: asyncssh.SSHClientConnection) -> str:
        await asyncio.to_thread(customer.arm, "partition", instance_id=machine["id"], seconds=0.5)
        return str((await connection.run("echo through")).stdout)

    assert login.do(machine, work) == "through\n"
    assert customer.struck("partition")[-1]["instance_id"] == machine["id"]


def test_host_key_swapped_answers_with_a_key_nobody_was_told(customer: Customer, login: Any) -> None:
    machine = customer.rent_running()
    told = login.output(machine, "cat $STATIONMASTER_HOST_KEYS/ssh_host_ed25519_key.pub")
    pinned = asyncssh.import_known_hosts(f"* {told}\n")
    login.do(machine, _echo, known_hosts=pinned)
    customer.arm("host_key_swapped", instance_id=machine["id"])
    with pytest.raises(asyncssh.HostKeyNotVerifiable):
        login.do(machine, _echo, known_hosts=pinned)
    assert login.output(machine, "cat $STATIONMASTER_HOST_KEYS/ssh_host_ed25519_key.pub") == told


@pytest.mark.parametrize(("door", "open_door"), [("direct", "proxy"), ("proxy", "direct")])
def test_ssh_refused_at_one_door_while_the_api_says_running(
    customer: Customer, login: Any, door: str, open_door: str
) -> None:
    machine = customer.rent_running()
    customer.strike("ssh_refused", machine["id"], door=door)
    with pytest.raises(ConnectionRefusedError):
        login.do(machine, _echo, door=door)
    assert login.do(machine, _echo, door=open_door) == "hello\n"
    assert (customer.read(machine["id"]) or {})["actual_status"] == "running"
    customer.end_strikes()
    assert until(lambda: _answers(login, machine))


def test_status_lies_while_ssh_works(customer: Customer, login: Any) -> None:
    machine = customer.rent_running()
    customer.strike("status_lies", machine["id"])
    customer.wait_for(machine["id"], "exited")
    assert login.do(machine, _echo) == "hello\n"
    customer.end_strikes()
    customer.wait_for(machine["id"], "running")


def test_disk_full_takes_no_file_from_anybody(customer: Customer, login: Any, tmp_path: Path) -> None:
    machine = customer.rent_running()
    login.leave_running(machine, "while [ ! -e ~/go ]; do sleep 0.1; done; echo x > ~/log")
    customer.arm("disk_full", instance_id=machine["id"])
    assert login.run(machine, "echo data > ~/file").exit_status != 0
    (tmp_path / "file").write_bytes(b"x" * 100_000)

    async def put(connection: asyncssh.SSHClientConnection) -> None:
        async with connection.start_sftp_client() as files:
            await files.put(str(tmp_path / "file"), "file")

    with pytest.raises(asyncssh.SFTPError):
        login.do(machine, put)
    login.output(machine, "mkdir ~/go")
    assert until(lambda: customer.truth(machine["id"])["processes"] == [])
    assert login.output(machine, "cat ~/log 2> /dev/null | wc -c") == "0"


def test_clock_skew_is_read_by_the_machines_programs(customer: Customer, login: Any) -> None:
    machine = customer.rent_running()
    customer.arm("clock_skew", instance_id=machine["id"], seconds=7200)
    for command in ("python3 -c 'import time; print(time.time())'", "date +%s"):
        assert float(login.output(machine, command)) == pytest.approx(time.time() + 7200, abs=60)


def test_a_fault_waits_until_something_is_there_to_strike(customer: Customer, login: Any) -> None:
    customer.arm("status_lies", label="sm-later", seconds=1000)
    machine = customer.rent(label="sm-later")
    customer.wait_for(machine, "exited")
    assert customer.struck("status_lies")[-1]["status"] == "running"


async def _echo(connection: asyncssh.SSHClientConnection) -> str:
    return str((await connection.run("echo hello")).stdout)


def _answers(login: Any, machine: dict[str, Any]) -> bool:
    try:
        return bool(login.do(machine, _echo, connect_timeout=2))
    except (OSError, asyncssh.Error):
        return False
