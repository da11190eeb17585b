"""Machines of the process back end are real: logins, processes, files, and nothing left of them afterwards."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from stationmaster.simulator.machines.marked_processes import find_marked
from tests.support.capabilities import require
from tests.support.vast.simulated_vast import Customer
from tests.support.waiting import until


def test_a_command_runs_with_its_own_output_errors_input_and_status(customer: Customer, login: Any) -> None:
    machine = customer.rent_running()
    done = login.run(machine, "cat; echo wrong >&2; exit 3", input="hello")
    assert (done.stdout, done.stderr, done.exit_status) == ("hello", "wrong\n", 3)
    killed = login.run(machine, "kill -TERM $$")
    assert killed.exit_signal[0] == "TERM"


def test_large_and_binary_output_arrives_whole(customer: Customer, login: Any) -> None:
    machine = customer.rent_running()
    data = os.urandom(3_000_000)
    done = login.run(machine, "cat", input=data, encoding=None)
    assert done.stdout == data


def test_the_system_ssh_client_logs_in_at_both_doors(customer: Customer, login: Any) -> None:
    machine = customer.rent_running()
    doors = [machine["ports"]["22/tcp"][0]["HostPort"], str(machine["ssh_port"])]
    options = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes"]
    for port in doors:
        command = ["ssh", "-F", "none", "-i", str(login.key_path), *options, "-p", port, "root@127.0.0.1", "pwd"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip().endswith(f"/machines/{machine['id']}/root/root")


def test_a_terminal_is_given_when_asked_for(customer: Customer, login: Any) -> None:
    machine = customer.rent_running()
    done = login.run(machine, "tty; stty size; echo $TERM", term_type="xterm", term_size=(100, 40))
    assert str(done.stdout).split() == [str(done.stdout).split()[0], "40", "100", "xterm"]
    assert str(done.stdout).startswith("/dev/")


def test_files_go_up_and_come_down_by_sftp(customer: Customer, login: Any, tmp_path: Path) -> None:
    machine = customer.rent_running()
    sent, received = tmp_path / "sent", tmp_path / "received"
    sent.write_bytes(os.urandom(1_000_000))

    async def work(connection: asyncssh.SSHClientConnection) -> None:
        async with connection.start_sftp_client() as files:
            await files.put(str(sent), "up here.bin")
            assert str(await files.realpath(".")).endswith(f"{machine['id']}/root/root")
            await files.get("up here.bin", str(received))

    login.do(machine, work)
    assert received.read_bytes() == sent.read_bytes()
    assert login.output(machine, "stat -c %s ~/'up here.bin'") == "1000000"


def test_rsync_runs_over_the_machines_ssh(customer: Customer, login: Any, tmp_path: Path) -> None:
    require("rsync")
    machine = customer.rent_running()
    (tmp_path / "file").write_bytes(os.urandom(2_000_000))
    shell = f"ssh -F none -i {login.key_path} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
    target = f"root@127.0.0.1:{login.output(machine, 'echo $STATIONMASTER_WORKSPACE')}/"
    command = ["rsync", "-e", f"{shell} -p {machine['ssh_port']}", str(tmp_path / "file"), target]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr
    assert login.output(machine, "stat -c %s $STATIONMASTER_WORKSPACE/file") == "2000000"


def test_a_port_on_the_machine_can_be_reached_through_ssh(customer: Customer, login: Any, simulator: Any) -> None:
    machine = customer.rent_running()
    port = int(simulator[0].rsplit(":", 1)[1])

    async def work(connection: asyncssh.SSHClientConnection) -> bytes:
        reader, writer = await connection.open_connection("127.0.0.1", port)
        writer.write(b"GET /api/v0/gpu_names/unique/ HTTP/1.0\r\n\r\n")
        answer: bytes = await reader.read(12)
        return answer

    assert login.do(machine, work) == b"HTTP/1.1 200"


def test_onstart_runs_with_its_variables_and_its_words_reach_the_log(customer: Customer, login: Any) -> None:
    onstart = 'echo "$GREETING from $VAST_CONTAINERLABEL"; cat "$STATIONMASTER_HOST_KEYS"/*.pub >> $LOG'
    onstart = onstart.replace("$LOG", '"$STATIONMASTER_CONTAINER_LOG"')
    machine = customer.rent_running(env={"GREETING": "hello", "-p 80:80": "1"}, onstart=onstart)
    text = until(lambda: text if "ssh-ed25519" in (text := customer.log(machine["id"])) else None)
    assert f"hello from C.{machine['id']}" in text
    told = next(line for line in text.splitlines() if line.startswith("ssh-ed25519"))

    async def work(connection: asyncssh.SSHClientConnection) -> str:
        key = connection.get_server_host_key()
        assert key is not None
        return key.export_public_key().decode()

    assert login.do(machine, work).split()[1] == told.split()[1]
    assert login.run(machine, "echo [$GREETING$CONTAINER_API_KEY]").stdout == "[]\n"


def test_every_path_that_a_machine_is_told_lies_in_its_own_folder(
    customer: Customer, login: Any, simulator: Any
) -> None:
    machine = customer.rent_running()
    root = f"{simulator[1]}/machines/{machine['id']}/root/"
    told = dict(line.split("=", 1) for line in login.output(machine, "env").splitlines() if "=" in line)
    names = {name for name, value in told.items() if value.startswith(root)}
    assert names >= {
        "HOME",
        "TMPDIR",
        "STATIONMASTER_JOB_ROOT",
        "STATIONMASTER_WORKSPACE",
        "STATIONMASTER_HOST_KEYS",
        "STATIONMASTER_CONTAINER_LOG",
    }
    assert told["STATIONMASTER_PROVIDER_URL"] == simulator[0]


def test_a_machine_can_stop_itself_with_the_key_inside_it(customer: Customer) -> None:
    onstart = """python3 - <<'END'
import os, urllib.request
url = os.environ["STATIONMASTER_PROVIDER_URL"] + "/api/v0/instances/" + os.environ["CONTAINER_ID"] + "/"
key = {"Authorization": "Bearer " + os.environ["CONTAINER_API_KEY"]}
urllib.request.urlopen(urllib.request.Request(url, b'{"state": "stopped"}', key, method="PUT"))
END
"""
    stopped = customer.wait_for(customer.rent(onstart=onstart), "exited")
    assert stopped["intended_status"] == "stopped"
    assert customer.truth(stopped["id"])["processes"] == []


def test_a_key_that_is_not_on_the_machine_is_refused_until_it_is_attached(customer: Customer, login: Any) -> None:
    machine = customer.rent_running()
    other = asyncssh.generate_private_key("ssh-ed25519")

    async def work(connection: asyncssh.SSHClientConnection) -> str:
        return str((await connection.run("echo in")).stdout)

    with pytest.raises(asyncssh.PermissionDenied):
        login.do(machine, work, client_keys=[other])
    key = other.export_public_key().decode()
    customer.http.post(f"/api/v0/instances/{machine['id']}/ssh/", json={"ssh_key": key})
    assert login.do(machine, work, client_keys=[other]) == "in\n"


def test_a_stop_ends_every_process_and_keeps_the_files_for_the_next_start(customer: Customer, login: Any) -> None:
    machine = customer.rent_running(onstart="echo started >> ~/starts")
    login.output(machine, "echo kept > $STATIONMASTER_WORKSPACE/model")
    login.leave_running(machine, "sleep 1000")
    marker = login.output(machine, "echo $STATIONMASTER_MACHINE")
    host_key = login.output(machine, "cat $STATIONMASTER_HOST_KEYS/*.pub")
    assert find_marked(marker)
    customer.put(machine["id"], state="stopped")
    assert find_marked(marker) == []
    with pytest.raises(OSError):
        login.run(machine, "true")
    customer.put(machine["id"], state="running")
    again = customer.wait_for(machine["id"], "running")
    assert login.output(again, "cat $STATIONMASTER_WORKSPACE/model") == "kept"
    assert login.output(again, "cat $STATIONMASTER_HOST_KEYS/*.pub") == host_key
    assert until(lambda: login.output(again, "cat ~/starts") == "started\nstarted")


def test_destroy_leaves_no_process_and_no_file(customer: Customer, login: Any, simulator: Any) -> None:
    machine = customer.rent_running(onstart="sleep 1000 & sleep 1000")
    login.leave_running(machine, "while true; do (sleep 0.05 &); sleep 0.01; done")
    marker = login.output(machine, "echo $STATIONMASTER_MACHINE")
    assert len(find_marked(marker)) >= 2
    customer.destroy(machine["id"])
    assert find_marked(marker) == []
    assert not (simulator[1] / "machines" / str(machine["id"])).exists()


def test_two_machines_share_nothing(customer: Customer, login: Any) -> None:
    first, second = customer.rent_running(label="same"), customer.rent_running(label="same")
    login.leave_running(first, "echo > ~/mine; sleep 1000")
    login.leave_running(second, "sleep 1000")
    assert login.run(second, "ls ~/mine").exit_status != 0
    customer.destroy(first["id"])
    assert len(customer.truth(second["id"])["processes"]) >= 1


def test_gpu_readings_follow_the_load(customer: Customer, login: Any) -> None:
    machine = customer.rent_running(offer_id=customer.offers(num_gpus={"eq": 1})[0]["id"])
    query = "nvidia-smi --query-gpu=name,utilization.gpu,memory.total --format=csv,noheader,nounits"
    name, idle, memory = login.output(machine, query).split(", ")
    assert name == f"NVIDIA GeForce {machine['gpu_name']}"
    assert (int(idle), int(memory)) == (0, machine["gpu_ram"])
    login.leave_running(machine, "timeout 60 sh -c 'while :; do :; done'")
    assert until(lambda: int(login.output(machine, query).split(", ")[1]) > 10)
    assert until(lambda: (customer.read(machine["id"]) or {})["gpu_util"] > 10)
    assert "CUDA Version" in login.output(machine, "nvidia-smi")


def test_what_goes_through_a_machines_door_is_on_its_bill(customer: Customer, login: Any) -> None:
    dear = next(offer for offer in customer.offers() if offer["inet_up_cost"] >= 0.01)
    machine = customer.wait_for(customer.rent(dear["id"]), "running")
    login.run(machine, "head -c 5000000 /dev/zero", encoding=None)
    expected = 5e6 / 1e9 * dear["inet_up_cost"]
    assert until(lambda: customer.truth(machine["id"])["cost"]["uploads"] >= expected * 0.9)
