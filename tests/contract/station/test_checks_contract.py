"""What `doctor` tells, whatever the station is made of."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from stationmaster.errors import UserError
from stationmaster.station.base import Station
from stationmaster.station.checks import CheckResult, passed
from stationmaster.station.http.station import HttpStation
from tests.contract.station.test_instances_contract import rent, stray
from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.station_kinds import every_station
from tests.support.jobs.submitting import submit
from tests.support.machines.gpu_tools import UUIDS, nvidia_gpu, write_nvidia_smi, write_tool


def results(station: Station, check: str) -> list[CheckResult]:
    return [result for result in station.checks.results(offline=True) if result.check == check]


@every_station
def test_a_station_in_order_tells_what_it_is_made_of(world: LocalWorld) -> None:
    told = {result.check: result for result in world.station.checks.results()}
    computer = "disk gpu ssh rsync trackside page demo"
    assert " ".join(told) == f"version python settings home store schema worker sweep clock key channel {computer}"
    assert [name for name, result in told.items() if not result.ok and name != "disk"] == []
    assert world.store.installation_id in told["store"].detail
    assert "not needed" in told["worker"].detail


def test_the_gpus_of_the_computer_are_told(open_world: Callable[..., LocalWorld], tmp_path: Path) -> None:
    tools = write_nvidia_smi(tmp_path / "tools", [nvidia_gpu(free=20480), nvidia_gpu(1)])
    world = open_world(PATH=f"{tools}:{os.environ['PATH']}")
    first, second = (result.detail for result in results(world.station, "gpu"))
    assert first == f"0: RTX 4090 (20.0 of 24.0 GiB free), CUDA 13, {UUIDS[0]}"
    assert UUIDS[1] in second


def test_a_tool_that_finds_no_gpu_because_it_fails_is_told(
    open_world: Callable[..., LocalWorld], tmp_path: Path
) -> None:
    tools = write_tool(tmp_path / "tools", "nvidia-smi", "#!/bin/sh\necho 'No devices were found'; exit 6\n")
    world = open_world(PATH=f"{tools}:{os.environ['PATH']}")
    (gpu,) = results(world.station, "gpu")
    assert (gpu.ok, gpu.detail) == (False, "nvidia-smi fails: No devices were found")


def test_a_job_that_no_worker_takes_is_told_with_a_hint(world: LocalWorld, pictures: Path) -> None:
    submit(world.station, world.request(pictures, id="waits"))
    (worker,) = results(world.station, "worker")
    assert (worker.ok, "1 job(s)" in worker.detail, "doctor --service" in worker.hint) == (False, True, True)


@every_station
def test_every_open_alert_is_a_result_that_is_not_ok(open_world: Callable[..., LocalWorld]) -> None:
    world = open_world(STATIONMASTER_SWEEP__GRACE="0")
    assert results(world.station, "alert") == []
    rent(world, stray(world))
    world.station.instances.sweep()
    (alert,) = results(world.station, "alert")
    assert (alert.ok, stray(world) in alert.detail) == (False, True)


def test_a_bucket_that_cannot_be_reached_is_told(open_world: Callable[..., LocalWorld]) -> None:
    world = open_world(
        STATIONMASTER_BUCKET__NAME="models",
        STATIONMASTER_BUCKET__ENDPOINT="http://127.0.0.1:1",
        STATIONMASTER_BUCKET__ACCESS_KEY="key",
        STATIONMASTER_BUCKET__SECRET_KEY="secret",
    )
    (bucket,) = [result for result in world.station.checks.results() if result.check == "bucket"]
    assert not bucket.ok
    (unasked,) = results(world.station, "bucket")
    assert (unasked.ok, "not checked" in unasked.detail) == (True, True)


@pytest.mark.parametrize(
    ("environ", "problem", "setting"),
    [
        ({"STATIONMASTER_PROVIDER": "vastai"}, "Vast.ai needs a key", "VASTAI_API_KEY"),
        ({"DRIVER": "vastai:work", "VASTAI_API_KEY": "key"}, "no account work", "vastai.accounts.work.api_key"),
        ({"DRIVER": "local"}, "none of your own machines", "ssh.hosts"),
    ],
)
def test_a_default_provider_that_lacks_a_setting_is_told_with_its_name(
    open_world: Callable[..., LocalWorld], environ: dict[str, str], problem: str, setting: str
) -> None:
    (provider,) = results(open_world(**environ).station, "provider")
    assert (provider.ok, problem in provider.detail, setting in provider.hint) == (False, True, True)


def test_what_may_be_rented_by_default_is_told(open_world: Callable[..., LocalWorld]) -> None:
    world = open_world(DRIVER="vastai", VASTAI_API_KEY="planted", VASTAI_MAX_BID_PER_HOUR="0.9")
    (provider,) = results(world.station, "provider")
    assert provider == passed("provider", "vastai: key set, GPUs 4090, A100 preferred, at most $0.90 per hour")


def test_a_service_gets_the_settings_of_the_environment_from_a_file_that_only_its_owner_reads(
    open_local_world: Callable[..., LocalWorld], tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("hf_planted")
    world = open_local_world(VASTAI_API_KEY='pl"anted$', HF_TOKEN_FILE=str(tmp_path / "token"), UNRELATED="x")
    (world.settings.home / "stationmaster.db").unlink()
    service = world.station.checks.worker_service()
    file = Path(service.environment_file)
    assert service.home == str(world.settings.home)
    assert Path(service.python).exists()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    written = dict(line.split("=", 1) for line in file.read_text().splitlines())
    assert written["VASTAI_API_KEY"] == r'"pl\"anted\$"'
    assert written["HF_TOKEN_FILE"] == f'"{tmp_path}/token"'
    assert not written.keys() & {"UNRELATED", "STATIONMASTER_HOME", "HOME"}
    assert {"VASTAI_API_KEY", "HF_TOKEN_FILE"} <= set(service.variables)
    assert "PATH" not in service.variables
    assert not (world.settings.home / "stationmaster.db").exists()


def test_what_belongs_to_the_server_s_computer_is_refused_with_a_hint() -> None:
    with closing(HttpStation("http://127.0.0.1:1", None)) as station:
        for ask in (station.checks.worker_service, lambda: station.keys.setup(), lambda: station.monitoring.feed):
            with pytest.raises(UserError) as refused:
                ask()
            assert "on the server itself" in str(refused.value.hint)
