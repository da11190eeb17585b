"""A simulator that is killed and started again on the same home knows its machines, and leaves nothing when it ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simulated_vast import API_KEY, Customer, eventually
from stationmaster.errors import ConfigInvalid
from stationmaster.simulator.harness import SimulatorProcess
from stationmaster.simulator.machines.processes import find_marked
from stationmaster.simulator.main import run

PACE = {"created_seconds": 0.0, "loading_seconds": 0.0, "restart_seconds": 0.0, "log_seconds": 0.0}


@pytest.fixture
def process(tmp_path: Path) -> Iterator[SimulatorProcess]:
    arguments = {"port": 0, "api_key": API_KEY, "home": str(tmp_path / "sim"), "rate_limit_scale": 0.0, "pace": PACE}
    process = SimulatorProcess(arguments | {"keep": True})
    process.start()
    yield process
    process.stop()
    # A simulator that does not keep anything clears away what the others left.
    last = SimulatorProcess(arguments)
    last.start()
    last.stop()
    assert not list((tmp_path / "sim/machines").glob("*"))


def test_machines_outlive_a_killed_simulator(process: SimulatorProcess, login: Any) -> None:
    customer = Customer(process.url)
    customer.http.post("/api/v0/ssh/", json={"ssh_key": login.public})
    machine = customer.rent_running(label="sm-kept", onstart="echo started >> ~/starts; exec sleep 1000")
    other = customer.rent()
    customer.destroy(other)
    eventually(lambda: login.output(machine, "cat ~/starts") == "started")
    marker = login.output(machine, "echo $STATIONMASTER_MACHINE")
    customer.close()
    process.kill()
    assert len(find_marked(marker)) >= 1
    customer = Customer(process.start())
    again = customer.read(machine["id"])
    assert again is not None
    assert (again["label"], again["actual_status"], again["ports"]) == ("sm-kept", "running", machine["ports"])
    assert again["start_date"] == machine["start_date"]
    assert customer.listed() == {machine["id"]}
    assert login.output(again, "cat ~/starts") == "started"
    assert {charge["source"] for charge in customer.charges()} == {f"instance-{machine['id']}", f"instance-{other}"}
    customer.destroy(machine["id"])
    assert find_marked(marker) == []
    customer.close()


def test_a_port_that_is_taken_is_named(process: SimulatorProcess, tmp_path: Path) -> None:
    port = int(process.url.rsplit(":", 1)[1])
    with pytest.raises(ConfigInvalid, match=f"port {port}"):
        run(port=port, api_key="k", home=tmp_path / "other")


def test_an_unknown_back_end_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="steam"):
        run(port=0, api_key="k", home=tmp_path / "other", backend="steam")
