"""What a recipe needs of an own machine's system: reported, and installed only by root and where people allow it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stationmaster.control.flow.policy import Policy
from stationmaster.control.machine.drivers import install, may_install
from stationmaster.errors import CommandFailed
from stationmaster.model import Reason
from stationmaster.remote.ssh import SshRemote
from tests.support.asynchronous_tests import asynchronous
from tests.support.chaos.specs import a_job
from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.recipe_texts import small, write_recipe
from tests.support.jobs.spine_values import rental
from tests.support.machines.bare_machine import BareMachine, bare_machine
from tests.support.machines.own_hosts import environ_with_hosts, host_behind
from tests.support.policies import changed

_IN_DOCKER = ("version: 1\n", "version: 1\nruntime: docker\ncontainer: {image: 'trainer:1'}\nneeds: {gpus: 0}\n")
_ALLOWED = {"STATIONMASTER_BOOTSTRAP__INSTALL_DRIVERS": "true"}


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareMachine]:
    with bare_machine(tmp_path_factory.mktemp("bare")) as machine:
        yield machine


def told_at_login(machine: BareMachine, folder: Path, **environ: str) -> dict[str, dict[str, Any]]:
    """The events of a job that needs Docker, by kind, once its machine was judged."""
    write_recipe(folder / "recipes", "small", small(_IN_DOCKER))
    host = host_behind(machine.sshd, "box", folder / "jobs")
    values = {**environ_with_hosts(folder, host, trusted=(machine.sshd,)), **environ}
    values["STATIONMASTER_RECIPES"] = f'["{folder / "recipes"}"]'
    with LocalWorld(folder, **values) as world:
        world.store.jobs.submit(a_job("job-1", folder, recipe="small@1", provider="ssh"))

        def told() -> dict[str, dict[str, Any]]:
            return {event.kind: dict(event.payload) for event in world.store.events.of_job("job-1")}

        world.work_until(lambda: bool(told().keys() & {"logged_in", "attempt_failed"}), what="the machine is judged")
        return told()


def test_root_installs_what_is_missing_where_the_settings_say_so(machine: BareMachine, tmp_path: Path) -> None:
    machine.reset()
    told = told_at_login(machine, tmp_path, **_ALLOWED)
    assert told["machine_checked"]["missing"] == ["docker"]
    assert told["installing"] == told["installed"] == {"parts": ["docker"]}
    assert "logged_in" in told
    assert machine.asked == ["apt-get update", "apt-get install -y docker.io"]


@pytest.mark.parametrize(
    ("uid", "environ", "why"),
    [(0, {}, "let root do it with bootstrap.install_drivers"), (1000, _ALLOWED, "only root can install it")],
)
def test_without_leave_or_without_root_it_is_only_reported(
    machine: BareMachine, tmp_path: Path, uid: int, environ: dict[str, str], why: str
) -> None:
    machine.reset(uid=uid)
    told = told_at_login(machine, tmp_path, **environ)
    assert told["attempt_failed"]["reason"] == Reason.PREFLIGHT_FAILED
    assert "docker" in told["attempt_failed"]["explanation"]
    assert why in told["attempt_failed"]["explanation"]
    assert machine.asked == []


@pytest.mark.parametrize(
    ("packages", "asked"),
    [
        (("nvidia-driver",), ["apt-get update", "apt-get install -y nvidia-driver", "modprobe nvidia"]),
        (
            (),
            [
                "apt-get update",
                "apt-get install -y ubuntu-drivers-common",
                "ubuntu-drivers install --gpgpu",
                "modprobe nvidia",
            ],
        ),
    ],
)
@asynchronous
async def test_a_driver_is_installed_as_the_distribution_has_it(
    machine: BareMachine, packages: tuple[str, ...], asked: list[str]
) -> None:
    machine.reset(has_gpu=True, packages=packages)
    await _install(machine, "nvidia-driver")
    assert machine.asked == asked


@asynchronous
async def test_a_machine_without_such_a_gpu_gets_no_driver(machine: BareMachine) -> None:
    machine.reset(packages=("nvidia-driver",))
    with pytest.raises(CommandFailed, match="no NVIDIA GPU"):
        await _install(machine, "nvidia-driver")
    assert machine.asked == []


@pytest.mark.parametrize(("provider", "expected"), [("ssh", True), ("vastai", False), ("simulator", False)])
def test_nothing_is_ever_installed_on_a_rented_machine(provider: str, expected: bool) -> None:
    assert may_install(rental(provider=provider), changed(bootstrap={"install_drivers": True})) is expected
    assert not may_install(rental(provider=provider), Policy())


async def _install(machine: BareMachine, part: str) -> None:
    remote = SshRemote(machine.sshd.settings())
    try:
        await install(remote, [part])
    finally:
        await remote.close()
