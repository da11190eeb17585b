"""How an instance's states, messages and ports read as a machine."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.model import Machine, MachineStatus, SshAccess
from stationmaster.providers.vastai.machine_status import machine
from stationmaster.providers.vastai.wire import InstanceRow, read
from tests.support.vast.vast_client_bench import instance_row

STOPPED = {"intended_status": "stopped", "cur_state": "stopped", "next_state": "stopped"}
UNHEARD: dict[str, Any] = {"disk_usage": -1, "gpu_util": None, "ports": None, "status_msg": None}


def seen(**changes: Any) -> Machine:
    row = read(InstanceRow, instance_row(**changes), what="a machine")
    return machine(row, key_path="/keys/id", job_root="/opt/stationmaster/jobs")


@pytest.mark.parametrize(
    ("row", "status"),
    [
        ({}, MachineStatus.RUNNING),
        ({"actual_status": None, **UNHEARD}, MachineStatus.CREATING),
        ({"actual_status": "created", **UNHEARD}, MachineStatus.CREATING),
        ({"actual_status": "loading", **UNHEARD}, MachineStatus.CREATING),
        ({"actual_status": "rebooting"}, MachineStatus.CREATING),
        ({"actual_status": "exited", **STOPPED}, MachineStatus.STOPPED),
        ({"actual_status": "stopped", **STOPPED}, MachineStatus.STOPPED),
        ({"actual_status": "frozen"}, MachineStatus.STOPPED),
        ({"actual_status": "exited"}, MachineStatus.STOPPED),
        ({"actual_status": "running", **STOPPED}, MachineStatus.STOPPED),
        ({"actual_status": "offline"}, MachineStatus.OFFLINE),
        ({"actual_status": "unknown"}, MachineStatus.OFFLINE),
        ({"actual_status": "offline", **STOPPED}, MachineStatus.OFFLINE),
        ({"actual_status": "hibernating"}, MachineStatus.UNKNOWN),
    ],
)
def test_status(row: dict[str, Any], status: MachineStatus) -> None:
    assert seen(**row).status is status


@pytest.mark.parametrize(
    "message",
    [
        "Error response from daemon: failed to create task: OCI runtime create failed: runc",
        "Error response from daemon: unresolvable CDI devices nvidia.com/gpu=0",
        "docker_build() error writing dockerfile",
        "manifest for pytorch/nope:1 not found: manifest unknown",
        "pull access denied for private/image",
        "unauthorized: authentication required",
        "no such image: x",
    ],
)
def test_a_message_of_failure_settles_it_while_it_comes_up(message: str) -> None:
    failed = seen(actual_status="loading", **{**UNHEARD, "status_msg": message})
    assert (failed.status, failed.message) == (MachineStatus.FAILED, message)


def test_an_old_message_does_not_fail_a_machine_that_runs() -> None:
    assert seen(status_msg="Error response from daemon: something before").status is MachineStatus.RUNNING


@pytest.mark.parametrize("actual", [None, "created", "loading"])
def test_a_start_that_the_service_gave_up_has_failed(actual: str | None) -> None:
    gave_up = seen(actual_status=actual, **UNHEARD, **STOPPED)
    assert gave_up.status is MachineStatus.FAILED
    assert gave_up.message
    assert "did not start it" in gave_up.message


@given(
    st.sampled_from(
        [None, "created", "loading", "exited", "stopped", "frozen", "running", "offline", "unknown", "odd"]
    ),
    st.sampled_from(["running", "stopped", None]),
    st.sampled_from(["running", "stopped", None]),
    st.sampled_from(["", "OCI runtime create failed", "no such image", "success"]),
)
def test_a_machine_that_has_run_is_never_called_failed(
    actual: str | None, intended: str | None, state: str | None, message: str
) -> None:
    row = {"actual_status": actual, "intended_status": intended, "cur_state": state, "next_state": state}
    assert seen(**row, status_msg=message, disk_usage=3.5).status is not MachineStatus.FAILED


def test_while_the_image_is_pulled_its_progress_is_told() -> None:
    pulling = seen(actual_status="loading", **{**UNHEARD, "status_msg": "pytorch: Pulling fs layer 3/12"})
    assert pulling.message == "pytorch: Pulling fs layer 3/12"


def test_the_machines_own_port_comes_first_and_the_proxy_second() -> None:
    assert seen().accesses == (
        SshAccess(host="203.0.113.9", port=40000, user="root", job_root="/opt/stationmaster/jobs", key_path="/keys/id"),
        SshAccess(
            host="ssh5.vast.ai", port=35610, user="root", job_root="/opt/stationmaster/jobs", key_path="/keys/id"
        ),
    )


@given(
    st.sampled_from(["203.0.113.9", None]),
    st.sampled_from([{"22/tcp": [{"HostPort": "40000"}]}, {}, None]),
    st.sampled_from(["ssh5.vast.ai", None]),
    st.sampled_from([35610, None]),
    st.sampled_from(["ssh_direc ssh_proxy", "jupyter_direc ssh_direc ssh_proxy", None]),
)
def test_the_host_of_one_way_never_goes_with_the_port_of_the_other(
    address: str | None, ports: Any, proxy: str | None, proxy_port: int | None, runtype: str | None
) -> None:
    found = seen(public_ipaddr=address, ports=ports, ssh_host=proxy, ssh_port=proxy_port, image_runtype=runtype)
    doors = {(access.host, access.port) for access in found.accesses if isinstance(access, SshAccess)}
    shifted = 35611 if runtype and "jupyter" in runtype else 35610
    assert doors <= {("203.0.113.9", 40000), ("ssh5.vast.ai", shifted)}


def test_nothing_is_reachable_while_it_comes_up() -> None:
    assert seen(actual_status="loading", **UNHEARD).accesses == ()


def test_a_running_machine_costs_its_running_price_and_a_stopped_one_its_disk() -> None:
    disk = {"gpuCostPerHour": 0, "diskHour": 0.0083, "totalHour": 0.0083}
    assert seen().price_per_hour == 368_300
    assert seen(actual_status="loading", **UNHEARD, instance=disk).price_per_hour == 368_300
    assert seen(actual_status="exited", **STOPPED, instance=disk).price_per_hour == 8_300
    assert seen(actual_status="exited", **STOPPED, instance=None).price_per_hour == 8_300


def test_age_counts_from_the_start_date_and_never_from_the_duration() -> None:
    assert seen().created_at == 1787000000.2


def test_a_machine_without_a_label_is_nobodys() -> None:
    assert seen(label=None).label == ""
