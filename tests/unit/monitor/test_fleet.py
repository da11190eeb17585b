"""What is known of all machines: the listing merged with logs, and the last known state when something fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stationmaster.config import load_settings
from stationmaster.control.monitoring.fleet import Fleet
from stationmaster.control.monitoring.groups import Groups
from stationmaster.control.monitoring.instance_metrics import InstanceMetrics
from stationmaster.errors import ConfigInvalid, UserError
from stationmaster.model import SshAccess
from stationmaster.money import MicroDollars
from tests.support.monitoring.scripted_source import LOG, ONE, TWO, listed, piece


class Known:
    def __init__(self, **options: object) -> None:
        self.warnings: list[str] = []
        self.fleet = Fleet(warn=self.warnings.append, **options)  # type: ignore[arg-type]  # by name

    def instances(self, now: float = 0.0) -> dict[str, InstanceMetrics]:
        return {each.id: each for each in self.fleet.snapshot(now=now).instances}


def test_a_machine_has_the_values_of_the_listing_and_of_its_log() -> None:
    known = Known()
    known.fleet.take_listing(listed(ONE), now=3600.0)
    known.fleet.take_log("1", piece(LOG))
    first = known.instances()["1"]
    assert (first.step, first.loss, first.epoch, first.total_epochs) == (100, 2.345, 1.0, 3)
    assert (first.logs, first.logged_lines) == (("Epoch 1/3", "Step 100: Loss = 2.345"), 2)
    assert (first.total_cost, first.runtime_seconds, first.seen_at) == (3_600_000, 3600.0, 3600.0)


def test_runtime_is_counted_from_the_start_date_and_cost_from_rate_and_runtime() -> None:
    known = Known()
    known.fleet.take_listing(listed(replace(ONE, started_at=1000.0), replace(TWO, started_at=None)), now=2800.0)
    one, two = known.instances().values()
    assert (one.runtime_seconds, one.total_cost) == (1800.0, 1_800_000)
    assert (two.runtime_seconds, two.total_cost) == (None, 0)


def test_a_machine_that_vanished_from_the_list_keeps_its_last_state_and_is_told_once() -> None:
    known = Known()
    known.fleet.take_listing(listed(ONE, TWO), now=10.0)
    known.fleet.take_log("2", piece(LOG))
    for now in (20.0, 30.0):
        known.fleet.take_listing(listed(ONE), now=now)
        states = {each.id: (each.stale, each.seen_at, each.step) for each in known.instances().values()}
        assert states == {"1": (False, now, None), "2": (True, 10.0, 100)}
    assert known.warnings == ["instance 2 is not in the provider's list; showing what was last known"]
    assert [machine.id for machine in known.fleet.readable()] == ["1"]


def test_a_machine_that_is_gone_for_an_hour_is_forgotten_unless_it_was_asked_for() -> None:
    everything, chosen = Known(), Known(wanted=("1", "2"))
    for known in (everything, chosen):
        known.fleet.take_listing(listed(ONE, TWO), now=0.0)
        for now in (10.0, 3000.0, 3700.0):
            known.fleet.take_listing(listed(ONE), now=now)
    assert (sorted(everything.instances()), sorted(chosen.instances())) == (["1"], ["1", "2"])


def test_a_machine_that_was_asked_for_and_never_seen_is_shown_as_unknown() -> None:
    known = Known(wanted=("2", "9"))
    known.fleet.take_listing(listed(ONE, TWO), now=10.0)
    states = [(each.id, each.status, each.stale) for each in known.instances().values()]
    assert states == [("2", "running", False), ("9", "unknown", True)]


def test_entries_that_make_no_sense_are_told_once_and_the_others_shown() -> None:
    known = Known()
    for now in (10.0, 20.0):
        known.fleet.take_listing(listed(ONE, unreadable=("instance 7 skipped: id: not a number",)), now=now)
    assert list(known.instances()) == ["1"]
    assert known.warnings == ["instance 7 skipped: id: not a number"]


def test_a_log_that_cannot_be_read_keeps_what_was_known_and_says_why_once() -> None:
    known = Known()
    known.fleet.take_listing(listed(ONE), now=10.0)
    known.fleet.take_log("1", piece(LOG))
    assert known.fleet.take_log_problem("1", "no route")
    assert not known.fleet.take_log_problem("1", "no route")
    broken = known.instances()["1"]
    assert (broken.step, len(broken.logs), broken.problem) == (100, 2, "no route")
    known.fleet.take_log("1", piece(b"", continues=True))
    assert known.instances()["1"].problem is None
    assert known.warnings == ["no log of instance 1: no route"]


def test_all_shows_running_machines_and_goes_on_showing_one_that_exits() -> None:
    loading = replace(TWO, status="loading")
    known = Known(only_running=True)
    known.fleet.take_listing(listed(ONE, loading), now=10.0)
    assert list(known.instances()) == ["1"]
    known.fleet.take_listing(listed(replace(ONE, status="exited"), loading), now=20.0)
    assert [each.health_status().value for each in known.instances().values()] == ["error"]
    assert known.fleet.snapshot(now=20.0).summary.errors == 1


def test_a_machine_that_stops_and_costs_less_does_not_get_cheaper_backwards() -> None:
    known = Known()
    known.fleet.take_listing(listed(ONE), now=3600.0)
    known.fleet.take_listing(listed(replace(ONE, status="exited", cost_per_hour=MicroDollars(36_000))), now=7200.0)
    assert known.instances()["1"].total_cost == 3_600_000 + 36_000


def test_groups_have_ids_and_patterns_of_labels() -> None:
    groups = Groups({"loras": ("lora-*", "2"), "rest": ("other",)})
    known = Known(groups=groups)
    machines = listed(replace(ONE, label="lora-7"), TWO, replace(ONE, id="3", label="Other"))
    known.fleet.take_listing(machines, now=10.0)
    assert [each.groups for each in known.instances().values()] == [("loras",), ("loras",), ()]
    chosen = Known(groups=groups, group="loras")
    chosen.fleet.take_listing(machines, now=10.0)
    assert list(chosen.instances()) == ["1", "2"]


def test_an_unknown_group_is_refused_with_the_names_of_all() -> None:
    with pytest.raises(UserError, match="no group 'x'") as refused:
        Groups({"a": ("1",), "b": ("2",)}).require("x")
    assert refused.value.hint == "groups of the settings: a, b"


@pytest.mark.parametrize("groups", ['{"cats": []}', '{" ": ["1"]}', '{"cats": [""]}'])
def test_a_group_of_nothing_is_refused(groups: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match=r"monitor\.groups"):
        load_settings({"HOME": str(tmp_path), "STATIONMASTER_MONITOR__GROUPS": groups})


def test_the_command_to_log_in_can_be_pasted_into_a_shell() -> None:
    access = SshAccess(host="203.0.113.7", port=40022, user="root", job_root="", key_path="/home/me/my keys/id")
    known = Known()
    known.fleet.take_listing(listed(replace(ONE, accesses=(access,)), TWO), now=10.0)
    one, two = known.instances().values()
    assert (one.ssh, two.ssh) == ("ssh -i '/home/me/my keys/id' -p 40022 root@203.0.113.7", None)
