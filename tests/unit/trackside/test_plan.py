"""A plan is read tolerantly and refused clearly."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from trackside.root import Root, stays_inside
from trackside.steps.plan import PlanInvalid, parse_plan

STEP = {"name": "train", "argv": ["python3", "x.py"]}


def plan_with(**step: Any) -> dict[str, Any]:
    return {"format": 1, "steps": [{**STEP, **step}]}


def test_what_is_not_said_has_a_default() -> None:
    plan = parse_plan(plan_with())
    step = plan.steps[0]
    assert (step.cwd, step.tries, step.timeout_seconds, step.stop_signal) == ("work", 1, None, signal.SIGTERM)
    assert (plan.stop_grace_seconds, plan.outputs) == (10.0, ())


def test_keys_of_a_newer_home_are_ignored() -> None:
    assert parse_plan({**plan_with(colour="red"), "weather": "fine"}).steps[0].name == "train"


def test_what_a_further_try_gets_is_read() -> None:
    again = {"pattern": "output/*", "argv": ["--resume", "P"], "path": "P", "folder": "F"}
    found = parse_plan(plan_with(again=again)).steps[0].again
    assert found is not None
    assert found._asdict() == {**again, "argv": ("--resume", "P")}
    assert parse_plan(plan_with(again=None)).steps[0].again is None


@pytest.mark.parametrize("name", ["INT", "SIGINT"])
def test_a_stop_signal_may_be_named_either_way(name: str) -> None:
    assert parse_plan(plan_with(stop_signal=name)).steps[0].stop_signal == signal.SIGINT


@pytest.mark.parametrize(
    "broken",
    [
        {},
        [],
        None,
        {"format": 2, "steps": [STEP]},
        {"format": 1, "steps": []},
        {"format": 1, "steps": [{"name": "x"}]},
        plan_with(argv=[]),
        plan_with(argv="python3 x.py"),
        plan_with(argv=[1]),
        plan_with(argv=["a\0b"]),
        plan_with(cwd="/etc"),
        plan_with(cwd="work/../../x"),
        plan_with(expect=["../model"]),
        plan_with(stop_signal="FINE"),
        plan_with(timeout_seconds=-1),
        plan_with(timeout_seconds=float("nan")),
        plan_with(env={"A=B": "c"}),
        plan_with(env={"A": 1}),
        plan_with(secrets=[""]),
        plan_with(again={"pattern": "/etc/*", "argv": [], "path": "P", "folder": "F"}),
        plan_with(again={"pattern": "output/*", "argv": "--resume", "path": "P", "folder": "F"}),
        plan_with(again={"pattern": "output/*", "argv": []}),
        {**plan_with(), "outputs": [{"pattern": "/etc/*"}]},
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(broken: Any) -> None:
    with pytest.raises(PlanInvalid):
        parse_plan(broken)


@pytest.mark.parametrize(
    ("path", "inside"),
    [("work", True), ("a/b/*.x", True), ("a..b", True), ("", False), ("/a", False), ("..", False), ("a/../b", False)],
)
def test_a_path_stays_inside_the_root(path: str, inside: bool) -> None:
    assert stays_inside(path) is inside


def test_only_folders_of_tries_count_as_tries(tmp_path: Path) -> None:
    for name in ("1.1", "0.10", "0.2", "0.3.99.staged", "x.1", "7"):
        (tmp_path / ".trackside" / "steps" / name).mkdir(parents=True)
    assert Root(str(tmp_path)).tries() == [(0, 2), (0, 10), (1, 1)]


@pytest.mark.parametrize(
    ("given", "enabled", "interval", "per_process"),
    [
        (None, True, 5.0, True),
        ({}, True, 5.0, True),
        ({"enabled": False, "interval_seconds": 30, "per_process": False}, False, 30.0, False),
        ({"interval_seconds": 0.01}, True, 1.0, True),
        ({"enabled": None, "interval_seconds": "often", "per_process": None}, True, 5.0, True),
        ({"interval_seconds": float("nan")}, True, 5.0, True),
        ({"interval_seconds": -1}, True, 5.0, True),
        ({"interval_seconds": True}, True, 5.0, True),
        (["nonsense"], True, 5.0, True),
    ],
)
def test_invalid_monitoring_settings_get_their_defaults(
    given: Any, enabled: bool, interval: float, per_process: bool
) -> None:
    found = parse_plan({**plan_with(), "monitoring": given}).monitoring
    assert found == (enabled, interval, per_process)
