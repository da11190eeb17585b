"""The real onstart script under real shells, with an API of its own and a clock that the test sets."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stationmaster.errors import ConfigInvalid
from stationmaster.providers.vastai.onstart import (
    SCRIPT_LIMIT,
    guard_environment,
    host_keys_in,
    onstart_script,
)
from tests.support.vast.onstart_machine import ABANDON, IDLE, MACHINE_KEY, SHELLS, FakeApi, OnstartMachine, fake_api
from tests.support.vast.vast_client_bench import PUBLIC_KEY
from tests.support.waiting import until


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with fake_api() as served:
        yield served


@pytest.fixture(params=sorted(SHELLS))
def any_shell(request: pytest.FixtureRequest, tmp_path: Path, api: FakeApi) -> Iterator[OnstartMachine]:
    machine = OnstartMachine(tmp_path / "machine", api, shell=request.param)
    yield machine
    machine.halt()


@pytest.fixture
def machine(tmp_path: Path, api: FakeApi) -> Iterator[OnstartMachine]:
    machine = OnstartMachine(tmp_path / "machine", api)
    yield machine
    machine.halt()


@pytest.fixture
def trainer() -> Iterator[subprocess.Popen[bytes]]:
    """A process that lives until the test ends it."""
    process = subprocess.Popen(["/bin/sleep", "300"])
    yield process
    process.kill()
    process.wait()


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def test_the_key_is_let_in_and_no_terminal_multiplexer_is_started(any_shell: OnstartMachine) -> None:
    any_shell.boot()
    authorized = any_shell.home / ".ssh/authorized_keys"
    assert PUBLIC_KEY in authorized.read_text().splitlines()
    assert authorized.stat().st_mode & 0o777 == 0o600
    assert authorized.parent.stat().st_mode & 0o777 == 0o700
    assert (any_shell.home / ".no_auto_tmux").exists()


def test_keys_that_are_there_already_stay_and_ours_is_added_once(machine: OnstartMachine) -> None:
    authorized = machine.home / ".ssh/authorized_keys"
    authorized.parent.mkdir()
    authorized.write_text("ssh-ed25519 AAAAother service")  # without an end of line
    machine.boot()
    machine.halt()
    machine.boot()
    assert [line for line in authorized.read_text().splitlines() if line] == [
        "ssh-ed25519 AAAAother service",
        PUBLIC_KEY,
    ]


def test_host_keys_reach_its_own_output_and_the_containers_log(any_shell: OnstartMachine) -> None:
    any_shell.boot()
    until(lambda: host_keys_in(any_shell.output.read_text()) == ("ssh-ed25519 AAAAhost1",))
    until(lambda: host_keys_in(any_shell.container_log.read_text()) == ("ssh-ed25519 AAAAhost1",))


def test_host_keys_that_come_late_or_change_are_told_then(machine: OnstartMachine) -> None:
    key = machine.keys / "ssh_host_ed25519_key.pub"
    key.unlink()
    machine.boot()
    key.write_text("ssh-ed25519 AAAAlate root@machine\n")
    until(lambda: host_keys_in(machine.container_log.read_text()) == ("ssh-ed25519 AAAAlate",))
    (machine.keys / "ssh_host_rsa_key.pub").write_text("ssh-rsa AAAAmore root@machine\n")
    until(lambda: len(host_keys_in(machine.container_log.read_text())) == 2)


def test_a_container_log_that_cannot_be_written_does_no_harm(machine: OnstartMachine) -> None:
    machine.environment["STATIONMASTER_CONTAINER_LOG"] = str(machine.root / "absent/log")
    machine.boot()
    machine.look()
    assert host_keys_in(machine.output.read_text()) == ("ssh-ed25519 AAAAhost1",)


def test_ssh_sessions_get_the_containers_variables_but_not_its_key(machine: OnstartMachine) -> None:
    machine.boot()
    machine.halt()
    machine.boot()
    lines = (machine.root / "etc/environment").read_text().splitlines()
    assert lines.count("DATA_FOLDER=/data with blanks") == 1
    assert f"STATIONMASTER_JOB_ROOT={machine.jobs}" in lines
    assert not any(line.startswith(("HOME=", "CONTAINER_API_KEY=")) for line in lines)
    assert MACHINE_KEY not in (machine.root / "etc/environment").read_text()


def test_nothing_is_written_outside_the_machine(machine: OnstartMachine, tmp_path: Path) -> None:
    machine.boot()
    machine.look()
    assert [path.name for path in tmp_path.iterdir()] == ["machine"]
    script = onstart_script(PUBLIC_KEY)
    real_paths = ("/root", "/opt/", "/etc/", "/proc/1/", "https://")
    named = [line for line in script.splitlines() if any(path in line for path in real_paths)]
    assert all(":-" in line for line in named), "a real path may only be a variable's default"


def test_a_machine_on_which_nothing_began_is_destroyed_when_nobody_comes(
    any_shell: OnstartMachine, api: FakeApi
) -> None:
    any_shell.boot()
    any_shell.set_clock(1000 + IDLE)
    until(lambda: api.kinds()[:1] == ["destroy"])
    method, path, body, authorization = api.calls[0]
    assert (method, path, body) == ("DELETE", "/api/v0/instances/77/", {})
    assert authorization == f"Bearer {MACHINE_KEY}"


def test_before_its_time_is_up_the_guard_does_nothing(machine: OnstartMachine, api: FakeApi) -> None:
    machine.boot()
    machine.look()
    machine.set_clock(1000 + IDLE - 1)
    machine.look()
    assert api.calls == []


def test_a_visit_begins_the_time_anew(machine: OnstartMachine, api: FakeApi) -> None:
    machine.boot()
    machine.look()
    machine.set_clock(1000 + IDLE - 1)
    machine.visit(0)
    machine.set_clock(1000 + 2 * IDLE - 2)
    machine.look()
    assert api.calls == []
    machine.set_clock(1000 + 2 * IDLE - 1)
    until(lambda: api.kinds()[:1] == ["destroy"])


def test_a_machine_with_work_on_its_disk_is_stopped_and_not_destroyed(any_shell: OnstartMachine, api: FakeApi) -> None:
    any_shell.boot()
    any_shell.begin_step()
    any_shell.set_clock(1000 + IDLE)
    until(lambda: len(api.calls) >= 2)
    assert set(api.kinds()) == {"stop"}
    assert api.calls[0][:3] == ("PUT", "/api/v0/instances/77/", {"state": "stopped"})


def test_what_home_has_safe_is_destroyed(machine: OnstartMachine, api: FakeApi) -> None:
    machine.boot()
    machine.begin_step()
    machine.acknowledge()
    machine.set_clock(1000 + IDLE)
    until(lambda: api.kinds()[:1] == ["destroy"])


def test_a_training_goes_on_alone_until_the_jobs_limit(
    any_shell: OnstartMachine, api: FakeApi, trainer: subprocess.Popen[bytes]
) -> None:
    any_shell.boot()
    any_shell.begin_step()
    any_shell.train(trainer.pid)
    any_shell.visit(5 * IDLE)
    any_shell.set_clock(1000 + 5 * IDLE)
    until(lambda: api.kinds()[:1] == ["stop"])


def test_a_training_is_left_alone_before_the_jobs_limit(
    machine: OnstartMachine, api: FakeApi, trainer: subprocess.Popen[bytes]
) -> None:
    machine.boot()
    machine.begin_step()
    machine.train(trainer.pid)
    machine.visit(5 * IDLE)
    machine.set_clock(1000 + 5 * IDLE - 1)
    machine.look()
    assert api.calls == []


def test_after_a_long_training_home_has_the_idle_time_to_come(
    machine: OnstartMachine, api: FakeApi, trainer: subprocess.Popen[bytes]
) -> None:
    machine.boot()
    machine.begin_step()
    machine.train(trainer.pid)
    machine.visit(50 * IDLE)
    machine.set_clock(1000 + 10 * IDLE)
    machine.look()
    end(trainer)
    machine.set_clock(1000 + 11 * IDLE - 1)
    machine.look()
    assert api.calls == []
    machine.set_clock(1000 + 11 * IDLE)
    until(lambda: api.kinds()[:1] == ["stop"])


def test_a_refused_stop_is_repeated_and_ends_in_destruction_after_days(machine: OnstartMachine, api: FakeApi) -> None:
    api.refuses_stop = True
    machine.boot()
    machine.begin_step()
    machine.set_clock(1000 + IDLE)
    until(lambda: len(api.calls) >= 2)
    machine.set_clock(1000 + IDLE + ABANDON - 1)
    machine.look()
    assert "destroy" not in api.kinds()
    machine.set_clock(1000 + IDLE + ABANDON)
    until(lambda: "destroy" in api.kinds())


def test_a_machine_started_again_gives_home_time_whatever_was_written_before(
    machine: OnstartMachine, api: FakeApi, trainer: subprocess.Popen[bytes]
) -> None:
    machine.boot()
    machine.begin_step()
    machine.visit(0)
    machine.train(trainer.pid)
    machine.halt()
    machine.set_clock(900_000)
    machine.boot()
    machine.look()
    assert api.calls == []
    assert not (machine.jobs / "job-1/.trackside/training.pid").exists(), "its number may be another process's now"
    machine.set_clock(900_000 + IDLE)
    until(lambda: api.kinds()[:1] == ["stop"])


def test_a_host_that_was_rebooted_counts_from_its_new_boot(machine: OnstartMachine, api: FakeApi) -> None:
    machine.boot()
    machine.begin_step()
    machine.visit(10 * IDLE)
    machine.halt()
    machine.set_clock(10)
    machine.boot()
    machine.look()
    machine.set_clock(10 + IDLE - 1)
    machine.look()
    assert api.calls == []
    machine.set_clock(10 + IDLE)
    until(lambda: api.kinds()[:1] == ["stop"])


@pytest.mark.parametrize("content", ["", "soon", "12", "-5 7", "1e9 1000", "99999 99999 1\n\n"])
def test_a_guard_file_that_makes_no_sense_gives_no_extra_time(
    machine: OnstartMachine, api: FakeApi, content: str
) -> None:
    machine.boot()
    machine.begin_step()
    (machine.jobs / ".guard").write_text(content)
    machine.set_clock(1000 + IDLE)
    until(lambda: api.kinds()[:1] == ["stop"])


def test_without_curl_python_asks(tmp_path: Path, api: FakeApi) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("sh", "cat", "cksum", "cut", "date", "env", "grep", "mkdir", "printf", "rm", "tr"):
        (programs / name).symlink_to(str(shutil.which(name)))
    python = programs / "python3"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    machine = OnstartMachine(tmp_path / "machine", api, path=str(programs))
    try:
        machine.boot()
        machine.begin_step()
        machine.set_clock(1000 + IDLE)
        until(lambda: api.kinds()[:1] == ["stop"])
        assert api.calls[0][3] == f"Bearer {MACHINE_KEY}"
    finally:
        machine.halt()


def test_the_machines_key_is_in_no_programs_arguments(machine: OnstartMachine, api: FakeApi) -> None:
    seen = machine.root / "arguments"
    curl = machine.root / "bin/curl"
    curl.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >>"{seen}"\nexec {shutil.which("curl")} "$@"\n')
    curl.chmod(0o755)
    machine.boot()
    machine.set_clock(1000 + IDLE)
    until(lambda: api.kinds()[:1] == ["destroy"])
    assert "DELETE" in seen.read_text()
    assert MACHINE_KEY not in seen.read_text()


def test_the_script_fits_with_a_long_key_and_says_so_when_it_does_not() -> None:
    assert len(onstart_script(f"ssh-rsa {'A' * 720} somebody@a-long-name.example")) <= SCRIPT_LIMIT
    with pytest.raises(ConfigInvalid, match="too long"):
        onstart_script(f"ssh-rsa {'A' * 3000} somebody")
    with pytest.raises(ConfigInvalid):
        onstart_script("not a key")


def test_a_comment_in_the_key_cannot_become_a_command(machine: OnstartMachine) -> None:
    machine.boot(f"{' '.join(PUBLIC_KEY.split()[:2])} it's; touch {machine.root}/owned $(touch {machine.root}/owned)")
    machine.look()
    assert not (machine.root / "owned").exists()
    assert "it's; touch" in (machine.home / ".ssh/authorized_keys").read_text()


def test_the_guards_times_reach_the_machine_as_whole_seconds() -> None:
    assert guard_environment(idle_seconds=10.4, abandon_seconds=3600.0) == {
        "STATIONMASTER_GUARD_IDLE": "10",
        "STATIONMASTER_GUARD_ABANDON": "3600",
        "STATIONMASTER_GUARD_LOOK": "2.6",
    }
    assert guard_environment(idle_seconds=1800.0, abandon_seconds=3600.0)["STATIONMASTER_GUARD_LOOK"] == "15"


def test_a_block_of_keys_that_is_not_whole_is_not_believed() -> None:
    whole = "sm-host-keys begin\nsm-host-key ssh-ed25519 AAAA1\nsm-host-keys end\n"
    assert host_keys_in(whole + "sm-host-keys begin\nsm-host-key ssh-ed25519 AAAA2\n") == ("ssh-ed25519 AAAA1",)
    assert host_keys_in(whole + whole.replace("AAAA1", "AAAA2").replace("\n", "\r\n")) == ("ssh-ed25519 AAAA2",)
    assert host_keys_in("sm-host-keys begin\nsm-host-key ssh-ed25519 AAA") == ()
