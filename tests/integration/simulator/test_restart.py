"""A simulator that is killed and started again on the same home knows its machines, and leaves nothing when it ends."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from stationmaster.errors import ConfigInvalid
from stationmaster.simulator.harness import SimulatorProcess, simulator_thread
from stationmaster.simulator.main import run
from tests.support.capabilities import require
from tests.support.vast.simulated_vast import API_KEY, QUICK, Customer, quick_settings
from tests.support.waiting import until

PACE = asdict(QUICK)


@pytest.fixture(params=["process", "namespaces"])
def process(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[SimulatorProcess]:
    if request.param == "namespaces":
        require("network namespaces")
        require("sshd")
    arguments: dict[str, Any] = {"port": 0, "api_key": API_KEY, "home": str(tmp_path / "sim"), "backend": request.param}
    arguments |= {"rate_limit_scale": 0.0, "pace": PACE}
    process = SimulatorProcess(arguments | {"keep": True})
    process.start()
    yield process
    process.stop()
    # A simulator that does not keep anything clears away what the others left.
    with simulator_thread(quick_settings(tmp_path / "sim", backend=request.param)):
        pass
    assert not list((tmp_path / "sim/machines").glob("*"))


def test_machines_outlive_a_killed_simulator(process: SimulatorProcess, login: Any) -> None:
    customer = Customer(process.url)
    customer.http.post("/api/v0/ssh/", json={"ssh_key": login.public})
    machine = customer.rent_running(label="sm-kept", onstart="echo started >> ~/starts; exec sleep 1000")
    other = customer.rent()
    customer.destroy(other)
    until(lambda: login.output(machine, "cat ~/starts") == "started")
    running = customer.truth(machine["id"])["processes"]
    assert running
    customer.close()
    process.kill()
    assert all(Path(f"/proc/{pid}").exists() for pid in running)
    customer = Customer(process.start())
    again = customer.read(machine["id"])
    assert again is not None
    assert (again["label"], again["actual_status"], again["ports"]) == ("sm-kept", "running", machine["ports"])
    assert again["start_date"] == machine["start_date"]
    assert customer.listed() == {machine["id"]}
    assert login.output(again, "cat ~/starts") == "started"
    assert {charge["source"] for charge in customer.charges()} == {f"instance-{machine['id']}", f"instance-{other}"}
    customer.destroy(machine["id"])
    assert not any(_is_alive(pid) for pid in running)
    customer.close()


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    with taken, pytest.raises(ConfigInvalid, match=f"port {port}"):
        run(port=port, api_key="k", home=tmp_path / "other")


def test_an_unknown_back_end_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="steam"):
        run(port=0, api_key="k", home=tmp_path / "other", backend="steam")


def test_faults_from_a_file_strike_from_the_start_and_ssh_answers_after_running(tmp_path: Path, login: Any) -> None:
    faults = tmp_path / "faults.yaml"
    faults.write_text("faults: [{kind: server_error, operation: user, status: 500}]\n")
    pace = PACE | {"ssh_seconds": 3600.0}
    process = SimulatorProcess(
        {"port": 0, "api_key": API_KEY, "home": str(tmp_path / "sim"), "faults": str(faults), "pace": pace}
        | {"rate_limit_scale": 0.0}
    )
    customer = Customer(process.start())
    assert customer.http.get("/api/v0/users/current").status_code == 500
    assert customer.credit() == 100
    customer.http.post("/api/v0/ssh/", json={"ssh_key": login.public})
    machine = customer.rent_running()
    with pytest.raises(ConnectionRefusedError):
        login.run(machine, "true")
    customer.advance(3600)
    assert login.output(machine, "echo in") == "in"
    customer.close()
    process.stop()
    assert not list((tmp_path / "sim/machines").glob("*"))


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
