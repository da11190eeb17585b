from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.errors import ConfigInvalid
from stationmaster.simulator.faults import (
    FaultKind,
    FaultPlan,
    InjectedFault,
    Target,
    parse_faults,
    read_faults,
    storm,
)

ANYTHING = Target(operation="create", label="sm-a-1", instance_id=7)


def plan(*faults: InjectedFault) -> FaultPlan:
    return FaultPlan(faults, seed=1, started_at=0.0)


def test_a_fault_strikes_as_often_as_it_was_armed_and_is_tallied() -> None:
    armed = plan(InjectedFault(kind=FaultKind.SERVER_ERROR, times=2))
    struck = [armed.take(FaultKind.SERVER_ERROR, ANYTHING, now=float(moment)) is not None for moment in range(4)]
    assert struck == [True, True, False, False]
    assert [(strike.at, strike.label) for strike in armed.strikes] == [(0.0, "sm-a-1"), (1.0, "sm-a-1")]
    assert armed.armed == []


@pytest.mark.parametrize(
    ("fault", "strikes"),
    [
        (InjectedFault(kind=FaultKind.SERVER_ERROR, operation="create"), True),
        (InjectedFault(kind=FaultKind.SERVER_ERROR, operation="destroy"), False),
        (InjectedFault(kind=FaultKind.SERVER_ERROR, label="sm-a"), True),
        (InjectedFault(kind=FaultKind.SERVER_ERROR, label="sm-b"), False),
        (InjectedFault(kind=FaultKind.SERVER_ERROR, instance_id=7), True),
        (InjectedFault(kind=FaultKind.SERVER_ERROR, instance_id=8), False),
        (InjectedFault(kind=FaultKind.SERVER_ERROR, at_seconds=10.0), False),
        (InjectedFault(kind=FaultKind.SERVER_ERROR, skip=1), False),
        (InjectedFault(kind=FaultKind.SERVER_ERROR, probability=0.0), False),
        (InjectedFault(kind=FaultKind.RATE_LIMITED), False),
    ],
)
def test_a_fault_meets_only_what_it_is_aimed_at(fault: InjectedFault, strikes: bool) -> None:
    assert (plan(fault).take(FaultKind.SERVER_ERROR, ANYTHING, now=5.0) is not None) is strikes


def test_a_fault_armed_later_counts_its_moment_from_then() -> None:
    armed = plan()
    armed.arm(InjectedFault(kind=FaultKind.OUTBID, at_seconds=5.0), now=100.0)
    assert armed.take(FaultKind.OUTBID, ANYTHING, now=104.0) is None
    assert armed.take(FaultKind.OUTBID, ANYTHING, now=105.0) is not None


@given(st.integers(), st.sets(st.sampled_from(FaultKind), min_size=1))
def test_a_storm_comes_from_its_seed_and_holds_every_kind_before_one_again(seed: int, kinds: set[FaultKind]) -> None:
    wanted = sorted(kinds)
    drawn = storm(seed, seconds=500.0, every_seconds=(1.0, 5.0), kinds=wanted)
    assert drawn == storm(seed, seconds=500.0, every_seconds=(1.0, 5.0), kinds=wanted)
    assert {fault.kind for fault in drawn[: len(wanted)]} == kinds
    assert [fault.at_seconds for fault in drawn] == sorted(fault.at_seconds for fault in drawn)


def test_a_file_holds_single_faults_and_a_storm(tmp_path: Path) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text(
        "seed: 7\n"
        "faults:\n  - {kind: lost_answer, operation: create, times: 3}\n"
        "storm: {seconds: 60, every_seconds: [2, 4], kinds: [partition, outbid], fault_seconds: 1}\n"
    )
    first, *drawn = read_faults(path)
    assert first == InjectedFault(kind=FaultKind.LOST_ANSWER, operation="create", times=3)
    assert {fault.kind for fault in drawn} == {FaultKind.PARTITION, FaultKind.OUTBID}


@pytest.mark.parametrize("document", [{"kind": "earthquake"}, [{"kind": "outbid", "tims": 2}], {"faults": "all"}])
def test_a_fault_that_nobody_knows_is_named(document: object) -> None:
    with pytest.raises(ConfigInvalid, match="invalid fault"):
        parse_faults(document)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="nowhere"):
        read_faults(tmp_path / "nowhere.yaml")
