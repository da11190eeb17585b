"""A whole training on a machine of one's own, from the command line, over a real sshd."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stationmaster.control.worker.background import running_worker
from tests.support.asynchronous_tests import names_in
from tests.support.commands.command_line import answer_of, stationmaster
from tests.support.jobs.tiny_lora_runs import write_images
from tests.support.machines.own_hosts import environ_with_hosts, host_behind
from tests.support.servers.sshd import Sshd, running_sshd
from tests.support.waiting import until

QUICK = {
    "STATIONMASTER_WORKER__LINGER": "0s",
    "STATIONMASTER_MONITORING__POLL_INTERVAL": "500ms",
    "STATIONMASTER_MONITORING__WATCH_INTERVAL": "500ms",
}


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@pytest.fixture
def environ(sshd: Sshd, tmp_path: Path) -> Iterator[dict[str, str]]:
    host = host_behind(sshd, "box", tmp_path / "jobs", price_per_hour="0.10")
    yield {**environ_with_hosts(tmp_path, host, trusted=(sshd,)), **QUICK}
    until(lambda: running_worker(tmp_path / "home") is None, seconds=60)  # it goes when nothing is left to do


def train(folder: Path, *words: str) -> list[str]:
    images = write_images(folder / "images", count=6)
    common = ["--recipe", "tiny-lora@1", "--dataset", str(images), "--name", "cats", "--steps", "20"]
    quick = ("seconds_per_step=0", "save_every=10", "sample_every=10", f"python={sys.executable}")
    return ["train", *common, *(word for value in quick for word in ("-p", value)), "--yes", *words]


def test_two_jobs_share_an_own_machine_s_slot_and_leave_it_as_it_was(environ: dict[str, str], tmp_path: Path) -> None:
    environ = {**environ, "STATIONMASTER_TRANSFER__ARCHIVE_ABOVE_MB": "0"}  # only archives are kept for later jobs
    submitted = stationmaster(*train(tmp_path, "--driver", "local", "--id", "first"), environ=environ)
    assert submitted.returncode == 0, submitted.stderr
    second = train(tmp_path, "--provider", "ssh", "--id", "second", "--watch", "--json")
    jobs = [
        answer_of(*second, environ=environ, seconds=200),
        answer_of("show", "first", "--events", "--json", environ=environ),
    ]
    for job in jobs:
        assert (job["outcome"], job["execution"]["provider"], job["progress"]["step"]) == ("COMPLETED", "ssh", 20)
        assert Path(job["model"]).stat().st_size > 0
        assert [rental["instance"].partition("/")[0] for rental in job["rentals"]] == ["box"]
        assert job["cost_usd"] > 0
    held_at, gone_at = jobs[0]["rentals"][0]["held_at"], jobs[1]["rentals"][0]["gone_at"]
    assert held_at >= gone_at
    assert names_in(tmp_path / "jobs") == [".cache", ".lock"]
    # The second job found the first one's dataset on the machine; both saw it verified there.
    told = [[event["kind"] for event in job["progressLog"]] for job in jobs]
    assert ["data_already_there" in kinds for kinds in told] == [True, False]
    assert all("data_verified" in kinds for kinds in told)


def test_an_untrusted_host_is_refused_before_anything_is_submitted(sshd: Sshd, tmp_path: Path) -> None:
    environ = environ_with_hosts(tmp_path, host_behind(sshd, "box", tmp_path / "jobs"))
    refused = stationmaster(*train(tmp_path, "--provider", "ssh"), environ=environ)
    assert refused.returncode == 21
    assert "stationmaster keys trust box" in refused.stderr
    assert json.loads(stationmaster("jobs", "--json", environ=environ).stdout) == []
    assert stationmaster("keys", "trust", "box", "--yes", environ=environ).returncode == 0
    planned = stationmaster(*train(tmp_path, "--provider", "ssh", "--dry-run"), environ=environ)
    assert planned.returncode == 0, planned.stderr
