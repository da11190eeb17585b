"""Looks at any rented machines, as every face gets them."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from stationmaster.errors import AccessRefused, ConfigInvalid, NotFound, UserError
from stationmaster.simulator.harness import simulator_thread
from stationmaster.station.base import Station
from stationmaster.station.monitoring import MonitorLook, Notice, NoticeKind, Watched
from tests.support.jobs.local_world import LocalWorld
from tests.support.vast.simulated_vast import API_KEY, Customer, quick_settings

OpenWorld = Callable[..., LocalWorld]


def looks(station: Station, watched: Watched, count: int = 1) -> list[MonitorLook]:
    """Complete looks, one after another, with the warnings of those before them."""
    found: list[MonitorLook] = []
    warnings: tuple[str, ...] = ()
    with closing(station.monitoring.feed(watched, every_seconds=0.01)) as feed:
        while len(found) < count:
            look = feed.next(seconds=30.0)
            assert look is not None
            warnings += look.warnings
            if look.complete:
                found.append(replace(look, warnings=warnings))
                warnings = ()
                feed.refresh()
    return found


def test_made_up_machines_need_no_account_and_go_on_from_look_to_look(local_world: LocalWorld) -> None:
    first, second = looks(local_world.station, Watched(ids=("1", "2"), made_up=True), 2)
    for look in (first, second):
        assert [machine.id for machine in look.snapshot.instances] == ["1", "2"]
        assert (look.snapshot.stale, look.warnings, look.snapshot.summary.running) == (False, (), 2)
    assert first.snapshot.at < second.snapshot.at


def test_what_is_no_machine_s_id_is_refused(local_world: LocalWorld) -> None:
    with pytest.raises(UserError, match="'x' is not the id"):
        looks(local_world.station, Watched(ids=("1", "x"), made_up=True))


def test_without_an_account_it_is_told_what_to_set(local_world: LocalWorld) -> None:
    with pytest.raises(ConfigInvalid, match="needs a key") as refused:
        looks(local_world.station, Watched())
    assert "VASTAI_API_KEY" in str(refused.value.hint)


def test_machines_of_the_account_are_seen_and_a_missing_one_is_told_once(
    open_local_world: OpenWorld, tmp_path: Path
) -> None:
    with simulator_thread(quick_settings(tmp_path / "simulator")) as url, closing(Customer(url)) as customer:
        world = open_local_world(**account(url, tmp_path))
        rented = str(customer.rent(label="somebody's"))
        first, second = looks(world.station, Watched(ids=(rented, "17")), 2)
    for look in (first, second):
        shown = {machine.id: machine for machine in look.snapshot.instances}
        assert (shown[rented].label, shown[rented].stale, shown["17"].stale) == ("somebody's", False, True)
    assert [line for line in first.warnings if "instance 17" in line or "machine 17" in line]
    assert [line for line in second.warnings if "instance 17" in line or "machine 17" in line] == []


def test_what_is_shown_of_a_machine_is_stored_as_its_series(open_local_world: OpenWorld, tmp_path: Path) -> None:
    with simulator_thread(quick_settings(tmp_path / "simulator")) as url, closing(Customer(url)) as customer:
        world = open_local_world(**account(url, tmp_path))
        rented = str(customer.rent())
        shown = looks(world.station, Watched(ids=(rented,)), 3)
    subject = world.station.metrics.find(f"vastai/{rented}")
    (cost,) = world.station.metrics.series(subject, ["cost_per_hour_usd"])
    assert cost.axis == "time"
    assert cost.points.x == [look.snapshot.instances[0].seen_at for look in shown]
    assert cost.points.y == [look.snapshot.instances[0].cost_per_hour / 1_000_000 for look in shown]
    assert [table.name for table in world.station.metrics.contents(subject).tables] == ["InstanceSample"]


def test_made_up_machines_are_not_stored(local_world: LocalWorld) -> None:
    looks(local_world.station, Watched(ids=("1",), made_up=True), 2)
    with pytest.raises(NotFound):
        local_world.station.metrics.find("vastai/1")


def test_a_key_that_never_worked_is_the_person_s_to_mend(open_local_world: OpenWorld, tmp_path: Path) -> None:
    with simulator_thread(quick_settings(tmp_path / "simulator")) as url:
        world = open_local_world(**account(url, tmp_path, key="another"))
        with pytest.raises(AccessRefused):
            looks(world.station, Watched())


def test_a_service_that_does_not_answer_makes_a_look_stale(open_local_world: OpenWorld, tmp_path: Path) -> None:
    world = open_local_world(**account("http://127.0.0.1:1", tmp_path))
    (look,) = looks(world.station, Watched(ids=("17",)))
    assert look.snapshot.stale
    assert [line for line in look.warnings if "last known" in line]


def test_a_group_of_the_settings_limits_what_is_shown_and_an_unknown_one_is_refused(
    open_local_world: OpenWorld, tmp_path: Path
) -> None:
    with simulator_thread(quick_settings(tmp_path / "simulator")) as url, closing(Customer(url)) as customer:
        groups = '{"loras": ["lora-*"], "single": ["17"]}'
        world = open_local_world(**account(url, tmp_path), STATIONMASTER_MONITOR__GROUPS=groups)
        rented = str(customer.rent(label="lora-cats"))
        customer.rent(label="other")
        (look,) = looks(world.station, Watched(group="loras"))
        with pytest.raises(UserError, match="no group 'x'") as refused:
            world.station.monitoring.feed(Watched(group="x"), every_seconds=1.0)
        with closing(world.station.monitoring.feed(Watched(), every_seconds=1.0)) as feed:
            assert feed.groups == ("loras", "single")
    assert [(machine.id, machine.groups) for machine in look.snapshot.instances] == [(rented, ("loras",))]
    assert refused.value.hint == "groups of the settings: loras, single"


def test_machines_of_a_listing_need_no_account_and_are_not_stored(local_world: LocalWorld, tmp_path: Path) -> None:
    listing = tmp_path / "machines.json"
    listing.write_text(json.dumps([{"id": 17, "actual_status": "running", "label": "cats"}]))
    (look,) = looks(local_world.station, Watched(listing=str(listing)))
    assert [(machine.id, machine.label) for machine in look.snapshot.instances] == [("17", "cats")]
    with pytest.raises(NotFound):
        local_world.station.metrics.find("vastai/17")
    with pytest.raises(UserError, match="exclude each other"):
        local_world.station.monitoring.feed(Watched(listing=str(listing), made_up=True), every_seconds=1.0)


def test_a_notice_is_a_message_of_the_single_user(local_world: LocalWorld, tmp_path: Path) -> None:
    listing = tmp_path / "machines.json"
    row = {"id": 17, "actual_status": "running", "label": "cats", "gpu_util": 50.0}
    listing.write_text(json.dumps([row]))
    notices: list[Notice] = []
    watched = Watched(listing=str(listing), notify=True)
    with closing(local_world.station.monitoring.feed(watched, every_seconds=0.05)) as feed:
        assert feed.next(seconds=30.0) is not None
        listing.write_text(json.dumps([{**row, "actual_status": "exited"}]))
        while not notices:
            look = feed.next(seconds=30.0)
            assert look is not None
            notices += look.notices
    assert [notice.kind for notice in notices] == [NoticeKind.EXITED]
    (note,) = local_world.station.notifications.inbox()
    assert (note.kind, note.text) == ("machine", "Instance 17 (cats) has exited (status exited).")


def test_notices_about_made_up_machines_are_not_sent(local_world: LocalWorld) -> None:
    with pytest.raises(UserError, match="made-up"):
        local_world.station.monitoring.feed(Watched(made_up=True, notify=True), every_seconds=1.0)


def account(url: str, folder: Path, key: str = API_KEY) -> dict[str, str]:
    return {
        "VASTAI_API_KEY": key,
        "VASTAI_API_BASE_URL": f"{url}/api/v0",
        "VASTAI_SSH_KEY_PATH": str(folder / "no_key"),
        "STATIONMASTER_VASTAI__CALL_SPACING": "0",
    }
