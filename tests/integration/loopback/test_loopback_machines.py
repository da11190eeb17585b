"""Machines on this computer: whatever runs on one dies with it, nothing else does, and none sees our secrets."""

from __future__ import annotations

import os
import secrets
import select
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stationmaster.config import load_settings
from stationmaster.control.wiring.build import build_world
from stationmaster.control.wiring.open_store import open_store
from stationmaster.model import LocalAccess, MachineStatus, Requirements
from stationmaster.providers.labelled_processes import processes_of
from stationmaster.providers.loopback import LoopbackProvider
from stationmaster.remote.connect import connect
from tests.support.asynchronous_tests import asynchronous
from tests.support.killing import kill
from tests.support.waiting import until

WANT = Requirements(disk_gib=0.001)


@pytest.fixture
def label() -> Iterator[str]:
    """A label that no other test uses; what is left of its machine is killed."""
    name = f"sm-ab12cd34-{secrets.token_hex(6)}-1"
    yield name
    for pid in processes_of(name):
        kill(pid)


@pytest.fixture
def provider(tmp_path: Path) -> LoopbackProvider:
    return LoopbackProvider(tmp_path / "machines", environment={"PATH": os.environ["PATH"], "HOME": str(tmp_path)})


async def machine_of(provider: LoopbackProvider, label: str) -> LocalAccess:
    (offer,) = await provider.offers(WANT)
    await provider.create(offer, label=label, want=WANT)
    machine = await provider.describe(label)
    assert machine is not None
    (access,) = machine.accesses
    assert isinstance(access, LocalAccess)
    return access


def start_on(access: LocalAccess, script: str, *inherited: int) -> None:
    """What a step of a recipe does: starts something that may outlive it."""
    command, environment = ["python3", "-c", script], dict(access.environment)
    subprocess.run(command, env=environment, cwd=access.root, check=True, timeout=150, pass_fds=inherited)


DAEMON = """
import os, signal, sys, time
if os.fork():
    sys.exit()
os.setsid()
if os.fork():
    os._exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
os.chdir("/")
devnull = os.open(os.devnull, os.O_RDWR)
for stream in (0, 1, 2):
    os.dup2(devnull, stream)
time.sleep(600)
"""
BREEDER = """
import os, sys, time
if os.fork():
    sys.exit()
os.setsid()
devnull = os.open(os.devnull, os.O_RDWR)
for stream in (0, 1, 2):
    os.dup2(devnull, stream)
ends = time.monotonic() + 60
while time.monotonic() < ends:
    if os.fork():
        time.sleep(0.005)
        os._exit(0)
    os.setsid()
"""


def daemons_of(label: str) -> list[int]:
    """Those that have arrived where a daemon stays; the processes on the way there end."""
    return [pid for pid in processes_of(label) if Path(f"/proc/{pid}/cwd").resolve() == Path("/")]


@asynchronous
async def test_processes_that_left_their_session_and_ignore_term_die_with_the_machine(
    provider: LoopbackProvider, label: str
) -> None:
    access = await machine_of(provider, label)
    for _ in range(2):
        start_on(access, DAEMON)
    until(lambda: len(daemons_of(label)) == 2, what="two daemons")
    await provider.destroy(label)
    assert processes_of(label) == []
    assert await provider.describe(label) is None
    assert not Path(access.root).exists()


@asynchronous
async def test_a_process_that_forks_while_it_is_hunted_dies_too(provider: LoopbackProvider, label: str) -> None:
    access = await machine_of(provider, label)
    theirs_to_hold, held = os.pipe()
    start_on(access, BREEDER, held)
    os.close(held)
    until(lambda: processes_of(label), what="the first of them")
    await provider.destroy(label)
    # The pipe ends with the last process that has inherited it; it would go on for a minute.
    assert select.select([theirs_to_hold], [], [], 10)[0], "one of them got away"
    assert os.read(theirs_to_hold, 1) == b""
    os.close(theirs_to_hold)


@asynchronous
async def test_processes_of_other_machines_and_of_nobody_live_on(
    provider: LoopbackProvider, label: str, tmp_path: Path
) -> None:
    other = f"{label}0"  # a label that begins with the other's: names must be compared whole
    access = await machine_of(provider, label)
    neighbour = await machine_of(provider, other)
    bystander = subprocess.Popen(["sleep", "600"], env={"PATH": os.environ["PATH"], "NOTE": f"x{label}"})
    try:
        start_on(access, DAEMON)
        start_on(neighbour, DAEMON)
        until(lambda: daemons_of(label) and daemons_of(other), what="both daemons")
        (survivor,) = daemons_of(other)
        await provider.destroy(label)
        assert processes_of(label) == []
        assert processes_of(other) == [survivor]
        assert bystander.poll() is None
        assert Path(neighbour.root).is_dir()
    finally:
        bystander.kill()
        bystander.wait()
        await provider.destroy(other)
    assert processes_of(other) == []


@asynchronous
async def test_a_machine_whose_folder_is_gone_still_exists_while_its_processes_live(
    provider: LoopbackProvider, label: str
) -> None:
    access = await machine_of(provider, label)
    start_on(access, DAEMON)
    until(lambda: daemons_of(label), what="the daemon")
    subprocess.run(["rm", "-rf", access.root], check=True)
    left = await provider.describe(label)
    assert left is not None
    assert left.status is MachineStatus.FAILED
    await provider.destroy(label)
    assert await provider.describe(label) is None


@asynchronous
async def test_a_machine_whose_description_is_damaged_is_listed_as_failed_and_can_be_destroyed(
    provider: LoopbackProvider, label: str
) -> None:
    access = await machine_of(provider, label)
    Path(access.root, "machine.json").write_text('{"created_')
    assert [each.status for each in (await provider.listing()).machines] == [MachineStatus.FAILED]
    await provider.destroy(label)
    assert (await provider.listing()).machines == ()


@asynchronous
async def test_files_that_cannot_be_written_go_with_the_machine(provider: LoopbackProvider, label: str) -> None:
    access = await machine_of(provider, label)
    locked = Path(access.root, "jobs", "locked")
    locked.mkdir()
    (locked / "file").write_text("x")
    locked.chmod(0o500)
    await provider.destroy(label)
    assert not Path(access.root).exists()


@asynchronous
async def test_the_same_create_again_finds_the_machine_that_is_there(provider: LoopbackProvider, label: str) -> None:
    access = await machine_of(provider, label)
    Path(access.root, "jobs", "kept").touch()
    assert await machine_of(provider, label) == access
    assert Path(access.root, "jobs", "kept").exists()
    assert [path.name for path in Path(access.root).parent.iterdir()] == [label]
    await provider.destroy(label)


@asynchronous
async def test_what_a_killed_create_left_behind_goes_with_a_later_one(provider: LoopbackProvider, label: str) -> None:
    machines = Path((await machine_of(provider, label)).root).parent
    await provider.destroy(label)
    for name, age_seconds in ((".new-killed", 3600), (".new-at-work", 1)):
        (machines / name / "jobs").mkdir(parents=True)
        os.utime(machines / name, times=(time.time() - age_seconds,) * 2)
    await machine_of(provider, label)
    assert sorted(path.name for path in machines.iterdir()) == [".new-at-work", label]
    await provider.destroy(label)


@asynchronous
async def test_nothing_of_our_environment_but_what_programs_need_reaches_a_machine(tmp_path: Path, label: str) -> None:
    ours = {
        **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        "STATIONMASTER_HOME": str(tmp_path / "home"),
        "HF_TOKEN": "hf_s3cret",
        "VASTAI_API_KEY": "vast_s3cret",
        "STATIONMASTER_DATABASE_URL": f"sqlite:///{tmp_path}/s3cret.db",
        "AWS_SECRET_ACCESS_KEY": "aws_s3cret",
        "SSH_AUTH_SOCK": "/run/s3cret",
    }
    settings = load_settings({name: ours[name] for name in ours if name != "VASTAI_API_KEY"}, folder=tmp_path)
    store = open_store(settings)
    world = build_world(settings, ours, store)
    provider = world.providers["loopback"]
    assert isinstance(provider, LoopbackProvider)
    access = await machine_of(provider, label)
    remote = connect(access)
    try:
        shown = await remote.run(["env", "-0"], timeout=150)
        start_on(access, DAEMON)
        until(lambda: daemons_of(label), what="the daemon")
        (pid,) = daemons_of(label)
        everything = (
            shown.stdout + Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes()
        )
        assert label.encode() in everything
        assert b"s3cret" not in everything
    finally:
        await remote.close()
        await provider.destroy(label)
        await world.close()
        store.close()
