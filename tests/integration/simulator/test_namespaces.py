"""Machines of the namespaces back end: an address, a file system and a process table of their own."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from stationmaster.errors import ConfigInvalid
from stationmaster.simulator.harness import simulator_thread
from stationmaster.simulator.machines.namespaces import check_system
from tests.support.capabilities import require
from tests.support.vast.simulated_vast import Customer, quick_settings
from tests.support.waiting import until


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    require("network namespaces")
    require("sshd")
    home = tmp_path_factory.mktemp("namespaces")
    mounts, links = Path("/proc/mounts"), Path("/sys/class/net")
    before = {entry.name for entry in links.iterdir()}
    with simulator_thread(quick_settings(home, backend="namespaces", credit_usd=1000.0)) as address:
        yield address
    assert str(home) not in mounts.read_text()
    assert until(lambda: {entry.name for entry in links.iterdir()} <= before)


@pytest.fixture
def customer(url: str, login: Any) -> Iterator[Customer]:
    customer = Customer(url)
    customer.http.post("/api/v0/ssh/", json={"ssh_key": login.public})
    yield customer
    customer.http.delete("/simulator/faults")
    for instance_id in customer.listed():
        customer.destroy(instance_id)
    customer.close()


def test_a_machine_has_its_own_address_files_processes_and_name(customer: Customer, login: Any, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of this computer")
    machine = customer.rent_running()
    assert machine["public_ipaddr"].startswith("10.222.")
    assert machine["ports"]["22/tcp"][0]["HostPort"] == "22"
    seen = login.output(
        machine, f"hostname; whoami; pwd; ls -d /workspace; ls {tmp_path} 2>&1 | wc -l; ls /root /home | wc -l"
    )
    assert seen.split()[:4] == [f"C-{machine['id']}", "root", "/root", "/workspace"]
    assert login.run(machine, f"cat {tmp_path}/secret").exit_status != 0
    inside = login.output(machine, "cat /proc/[0-9]*/comm").split()
    assert set(inside) <= {"bash", "sshd", "sleep", "cat", "sh"}
    login.output(machine, "touch /usr/bin/made-inside")
    assert not Path("/usr/bin/made-inside").exists()


def test_both_doors_sftp_terminal_and_gpu_work(customer: Customer, login: Any, tmp_path: Path) -> None:
    machine = customer.rent_running()
    for door in ("direct", "proxy"):
        assert login.do(machine, _echo, door=door) == "hello\n"
    assert "NVIDIA" in login.output(machine, "nvidia-smi -L")
    assert str(login.run(machine, "tty", term_type="xterm").stdout).startswith("/dev/pts/")
    (tmp_path / "file").write_bytes(os.urandom(100_000))

    async def copy(connection: asyncssh.SSHClientConnection) -> None:
        async with connection.start_sftp_client() as files:
            await files.put(str(tmp_path / "file"), "/workspace/file")
            await files.get("/workspace/file", str(tmp_path / "back"))

    login.do(machine, copy)
    assert (tmp_path / "back").read_bytes() == (tmp_path / "file").read_bytes()
    assert (customer.read(machine["id"]) or {})["gpu_util"] is not None


def test_onstart_tells_the_host_key_through_pid_1_and_can_reach_the_api(customer: Customer, login: Any) -> None:
    onstart = (
        'echo "$GREETING"; cat /etc/ssh/ssh_host_*_key.pub > /proc/1/fd/1; '
        'python3 -c "import os, urllib.request as u; print(u.urlopen('
        "os.environ['STATIONMASTER_PROVIDER_URL'] + '/api/v0/gpu_names/unique/').status)\""
    )
    machine = customer.rent_running(onstart=onstart, env={"GREETING": "hello"})
    text = until(lambda: text if "200" in (text := customer.log(machine["id"])) else None)
    told = next(line for line in text.splitlines() if line.startswith("ssh-ed25519"))
    assert text.startswith("hello") or "\nhello" in text
    login.do(machine, _echo, known_hosts=asyncssh.import_known_hosts(f"* {told}\n"))


def test_a_stop_keeps_the_disk_and_a_destroy_nothing(customer: Customer, login: Any) -> None:
    machine = customer.rent_running(onstart="echo started >> /root/starts")
    login.leave_running(machine, "sleep 1000")
    login.output(machine, "echo kept > /workspace/model")
    pids = customer.truth(machine["id"])["processes"]
    assert pids
    customer.put(machine["id"], state="stopped")
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    customer.put(machine["id"], state="running")
    again = customer.wait_for(machine["id"], "running")
    assert login.output(again, "cat /workspace/model") == "kept"
    assert until(lambda: login.output(again, "cat /root/starts") == "started\nstarted")
    customer.destroy(machine["id"])
    with pytest.raises((OSError, asyncssh.Error)):
        login.do(machine, _echo, connect_timeout=0.5)


def test_a_partition_cuts_everything_while_the_work_goes_on(customer: Customer, login: Any) -> None:
    machine = customer.rent_running()
    login.leave_running(machine, "while :; do date +%s%N > /root/new; mv /root/new /root/beat; sleep 0.05; done")
    customer.strike("partition", machine["id"])
    for door in ("direct", "proxy"):
        with pytest.raises((OSError, asyncssh.Error)):
            login.do(machine, _echo, door=door, connect_timeout=0.4)
    during = time.time()
    customer.end_strikes()
    assert until(lambda: _answers(login, machine))
    assert int(login.output(machine, "cat /root/beat")) / 1e9 > during


def test_ssh_faults_on_a_real_sshd(customer: Customer, login: Any) -> None:
    machine = customer.rent_running()
    customer.strike("ssh_refused", machine["id"], door="direct")
    with pytest.raises(ConnectionRefusedError):
        login.do(machine, _echo)
    assert login.do(machine, _echo, door="proxy") == "hello\n"
    customer.end_strikes()
    assert until(lambda: _answers(login, machine))
    pinned = asyncssh.import_known_hosts("* " + login.output(machine, "cat /etc/ssh/ssh_host_ed25519_key.pub") + "\n")
    login.do(machine, _echo, known_hosts=pinned)
    customer.arm("host_key_swapped", instance_id=machine["id"])
    assert until(lambda: _answers(login, machine))
    with pytest.raises(asyncssh.HostKeyNotVerifiable):
        login.do(machine, _echo, known_hosts=pinned)


def test_disk_full_and_clock_skew_are_real(customer: Customer, login: Any) -> None:
    machine = customer.rent_running()
    customer.arm("clock_skew", instance_id=machine["id"], seconds=-3600)
    shown = login.output(machine, "python3 -c 'import time; print(time.time())'")
    assert float(shown) == pytest.approx(time.time() - 3600, abs=60)
    customer.arm("disk_full", instance_id=machine["id"])
    full = login.run(machine, "head -c 1000000 /dev/zero > /workspace/file")
    assert full.exit_status != 0
    assert "No space left on device" in str(full.stderr)


def test_a_vanished_host_is_offline_and_its_processes_are_dead(customer: Customer, login: Any) -> None:
    machine = customer.rent_running()
    login.leave_running(machine, "sleep 1000")
    pids = customer.truth(machine["id"])["processes"]
    customer.arm("host_vanishes", instance_id=machine["id"])
    customer.wait_for(machine["id"], "offline")
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.parametrize(
    ("platform", "user_id", "path", "reason"),
    [
        ("darwin", 0, "/bin", "root on Linux"),
        ("linux", 1000, "/bin", "root on Linux"),
        ("linux", 0, "/", "sshd"),
    ],
)
def test_where_it_cannot_work_the_back_end_says_why(platform: str, user_id: int, path: str, reason: str) -> None:
    with pytest.raises(ConfigInvalid, match=reason) as refused:
        check_system(platform=platform, user_id=user_id, path=path)
    assert refused.value.hint == "use --backend process"


async def _echo(connection: asyncssh.SSHClientConnection) -> str:
    return str((await connection.run("echo hello")).stdout)


def _answers(login: Any, machine: dict[str, Any]) -> bool:
    try:
        return bool(login.do(machine, _echo, connect_timeout=2))
    except (TimeoutError, OSError, asyncssh.Error):
        return False
