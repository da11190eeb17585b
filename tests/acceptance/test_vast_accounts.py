"""Several accounts at Vast.ai: the one that was named rents and pays, the others see nothing, the sweep covers all."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stationmaster.control.periodic.provider_bills import reconcile_charges
from stationmaster.control.periodic.sweep import Sweeper
from stationmaster.control.periodic.sweep_report import Report
from stationmaster.control.wiring.build import build_world
from stationmaster.errors import ConfigInvalid
from stationmaster.model import Desired, Outcome
from stationmaster.providers.vastai.ssh_keys import ensure_pair
from stationmaster.simulator.harness import simulator_thread
from tests.support.commands.command_line import answer_of, stationmaster
from tests.support.jobs.local_world import LocalWorld, write_pictures
from tests.support.jobs.submitting import submit
from tests.support.vast.simulated_vast import API_KEY, Customer, quick_settings

_WORK_KEY = "work-account-key-0123456789"
_PLAY_KEY = "play-account-key-0123456789"
_ACCOUNT = "STATIONMASTER_VASTAI__ACCOUNTS__{}__API_KEY"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """An installation with the default account and `work`, and each account's own view of the service."""

    world: LocalWorld
    default: Customer
    work: Customer
    pictures: Path

    @property
    def environ(self) -> dict[str, str]:
        return self.world.environ

    def truth(self) -> list[dict[str, Any]]:
        made: list[dict[str, Any]] = self.default.http.get("/simulator/state").json()["instances"]
        return made

    async def sweep(self) -> Report:
        world = build_world(self.world.settings, self.environ, self.world.store)
        try:
            return await Sweeper(world).sweep()
        finally:
            await world.close()

    async def reconcile(self) -> int:
        world = build_world(self.world.settings, self.environ, self.world.store)
        try:
            return await reconcile_charges(world, at_once=True)
        finally:
            await world.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    pair = ensure_pair(tmp_path / "keys" / "id_ed25519")
    with ExitStack() as open_things:
        url = open_things.enter_context(simulator_thread(quick_settings(tmp_path / "simulator")))
        default, work = Customer(url, API_KEY), Customer(url, _WORK_KEY)
        open_things.callback(default.close)
        open_things.callback(work.close)
        default.http.post("/simulator/accounts", json={"name": "work", "api_key": _WORK_KEY, "credit": 50})
        environ = {
            "VASTAI_API_KEY": API_KEY,
            _ACCOUNT.format("WORK"): _WORK_KEY,
            "VASTAI_API_BASE_URL": f"{url}/api/v0",
            "VASTAI_SSH_KEY_PATH": str(pair.private_path),
            "STATIONMASTER_VASTAI__CALL_SPACING": "0",
            "STATIONMASTER_SWEEP__GRACE": "0",
        }
        world = open_things.enter_context(LocalWorld(tmp_path, **environ))
        yield Bench(world=world, default=default, work=work, pictures=write_pictures(tmp_path / "pictures"))


def test_the_account_that_was_named_rents_pays_and_gives_back_and_the_other_sees_nothing(bench: Bench) -> None:
    untouched, before = bench.default.credit(), bench.work.credit()
    python = {"python": sys.executable}  # the machine's own may lack what the recipe imports
    request = bench.world.request(bench.pictures, id="on-work", provider="vastai", account="work", parameters=python)
    job = submit(bench.world.station, request).job
    assert job.spec.provider == "vastai:work"
    seen_by_default: set[int] = set()
    seen_by_work: set[int] = set()

    def is_seen_on_work() -> bool:
        seen_by_default.update(bench.default.listed())
        seen_by_work.update(bench.work.listed())
        return bool(seen_by_work)

    bench.world.work_until(is_seen_on_work, what="a machine of the account work")
    listed = answer_of("instances", "--json", environ=bench.environ)["machines"]
    assert [(row["provider"], row["job"]) for row in listed] == [("vastai:work", "on-work")]
    bench.world.work_until_ended("on-work")
    assert bench.world.station.jobs.view("on-work").job.outcome is Outcome.COMPLETED
    bench.default.advance(3600)
    assert (seen_by_default, bench.default.charges(), bench.default.credit()) == (set(), [], untouched)
    assert bench.work.credit() < before
    assert bench.work.listed() == set()
    assert {machine["exists"] for machine in bench.truth()} == {False}
    assert len(bench.truth()) == 1
    assert asyncio.run(bench.reconcile()) == 1, "its charges were not found on the account that paid"


def test_without_a_name_the_default_account_pays(bench: Bench) -> None:
    job = submit(bench.world.station, bench.world.request(bench.pictures, id="plain", provider="vastai")).job
    assert job.spec.provider == "vastai"
    bench.world.work_until(lambda: bool(bench.default.listed()), what="a machine of the default account")
    assert bench.work.listed() == set()
    bench.world.station.jobs.desire("plain", Desired.CANCEL)
    bench.world.work_until_ended("plain")
    assert (bench.work.charges(), bench.default.listed()) == ([], set())


def test_a_sweep_covers_every_account(bench: Bench) -> None:
    label = f"sm-{bench.world.store.installation_id}-nobody-1"
    for customer in (bench.default, bench.work):
        customer.rent_running(label=label)
    bench.work.rent_running(label="somebody-else")
    first = asyncio.run(bench.sweep())
    assert {(finding.provider, finding.verdict.act.value) for finding in first.findings} == {
        ("vastai", "alert"), ("vastai:work", "alert"), ("vastai:work", "leave"),
    }  # fmt: skip
    while bench.default.listed() or len(bench.work.listed()) > 1:
        asyncio.run(bench.sweep())
    assert [machine["label"] for machine in bench.truth() if machine["exists"]] == ["somebody-else"]


def test_a_machine_in_use_under_one_name_of_an_account_is_no_stray_under_another(bench: Bench) -> None:
    """As when a key moves from `vastai.api_key` to a named account while a job runs."""
    submit(bench.world.station, bench.world.request(bench.pictures, id="moved", provider="vastai"))
    bench.world.work_until(lambda: bool(bench.default.listed()), what="its machine")
    del bench.environ["VASTAI_API_KEY"]
    bench.environ[_ACCOUNT.format("PLAY")] = API_KEY
    renamed = LocalWorld(bench.world.folder, **bench.environ)
    moved = Bench(world=renamed, default=bench.default, work=bench.work, pictures=bench.pictures)
    with renamed:
        for _ in range(3):
            report = asyncio.run(moved.sweep())
            assert [(each.provider, each.verdict.act.value) for each in report.findings] == [("vastai:play", "leave")]
        assert len(bench.default.listed()) == 1


def test_a_machine_makes_the_job_root_of_the_settings(bench: Bench, tmp_path: Path) -> None:
    """Machines that are folders have a job root of their own for what comes later; onstart is told ours first."""
    root = tmp_path / "own" / "jobs"
    with LocalWorld(tmp_path, **bench.environ | {"STATIONMASTER_VASTAI__JOB_ROOT": str(root)}) as world:
        submit(world.station, world.request(bench.pictures, id="elsewhere", provider="vastai"))
        world.work_until(root.is_dir, what="the folder")
        world.station.jobs.desire("elsewhere", Desired.CANCEL)
        world.work_until_ended("elsewhere")


@pytest.mark.parametrize(
    ("provider", "account", "said", "hint"),
    [
        ("vastai", "wrok", "Vast.ai has no account wrok here", "did you mean `--account work`?"),
        ("vastai", "other", "Vast.ai has no account other here", "default, work"),
        ("loopback", "work", "loopback has no accounts", "--provider vastai (accounts: default, work)"),
        ("ssh", "work", "ssh has no accounts", "leave out the account"),
        ("vastai:work", "default", "vastai:work names another account than default", "name the account once"),
    ],
)
def test_an_account_that_is_not_there_is_refused_before_anything_happens(
    bench: Bench, provider: str, account: str, said: str, hint: str
) -> None:
    with pytest.raises(ConfigInvalid, match=said) as caught:
        submit(bench.world.station, bench.world.request(bench.pictures, id="no", provider=provider, account=account))
    assert hint in str(caught.value.hint)
    assert list(bench.world.station.jobs.listed(with_ended=True)) == []


def test_where_only_named_accounts_are_none_pays_by_accident(bench: Bench) -> None:
    environ = {name: value for name, value in bench.environ.items() if name != "VASTAI_API_KEY"}
    asked = stationmaster("offers", "--provider", "vastai", environ=environ)
    assert asked.returncode == 3
    assert asked.stderr.splitlines() == [
        "error: Vast.ai has no default account here, and none was given",
        "hint: choose one with --account: work",
    ]
    assert answer_of("offers", "--provider", "vastai", "--account", "work", "--json", environ=environ)["offers"]


def test_keys_and_monitor_speak_of_every_account(bench: Bench) -> None:
    environ = bench.environ | {_ACCOUNT.format("PLAY"): _PLAY_KEY}
    bench.default.http.post("/simulator/accounts", json={"name": "play", "api_key": _PLAY_KEY, "credit": 5})
    assert answer_of("keys", "setup", "--json", environ=environ)["providers"].keys() == {
        "vastai", "vastai:work", "vastai:play",
    }  # fmt: skip
    ids = {bench.default.rent_running()["id"], bench.work.rent_running()["id"]}
    shown = answer_of("monitor", "--once", "--json", environ=environ)["instances"]
    assert {int(each["id"]) for each in shown} == ids
