"""Levels of checks: a warning is ok, also where an older server does not tell the level; the clock; the page."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from stationmaster.cli.doctor import summary
from stationmaster.config import load_settings
from stationmaster.settings import Settings
from stationmaster.station.checks import CheckLevel, CheckResult, failed, passed, warned
from stationmaster.station.local.checks.accounts import clock_result
from stationmaster.station.local.checks.shipped_parts import page_result, trackside_result
from stationmaster.station.local.checks.workers import worker_results
from stationmaster.station.wire.checks import CheckDocument
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from tests.support.jobs.spine_values import spec
from tests.support.jobs.stored_jobs import machine_of


def test_only_a_failure_is_not_ok() -> None:
    assert [result.ok for result in (passed("a", ""), warned("a", ""), failed("a", ""))] == [True, True, False]


@pytest.mark.parametrize(
    "result", [passed("disk", "10 GiB free"), warned("disk", "few", "free some"), failed("a", "b")]
)
def test_a_result_is_the_same_after_it_was_sent(result: CheckResult) -> None:
    document = CheckDocument.of(result).model_dump_json()
    assert CheckDocument.model_validate_json(document).value() == result


@pytest.mark.parametrize(("ok", "level"), [(True, CheckLevel.OK), (False, CheckLevel.FAIL)])
def test_an_older_server_tells_no_level(ok: bool, level: CheckLevel) -> None:
    told = CheckDocument.model_validate({"check": "store", "ok": ok, "detail": "SQLite", "hint": ""})
    assert told.value().level is level


@pytest.mark.parametrize(
    ("ahead", "level", "words"),
    [
        (1.0, CheckLevel.OK, "right: 1 s ahead of Vast.ai's"),
        (-29.0, CheckLevel.OK, "right: 29 s behind Vast.ai's"),
        (-31.0, CheckLevel.WARN, "31 s behind Vast.ai's"),
        (301.0, CheckLevel.FAIL, "301 s ahead of Vast.ai's"),
    ],
)
def test_a_clock_that_is_far_off_is_a_failure(ahead: float, level: CheckLevel, words: str) -> None:
    found = clock_result([("Vast.ai's", ahead), ("the database's", 0.0)], has_accounts=True)
    assert (found.level, found.detail) == (level, words)
    assert ("ntp" in found.hint) == (level is not CheckLevel.OK)


def test_a_clock_that_could_not_be_compared_is_told_as_such() -> None:
    silent, alone = clock_result([], has_accounts=True), clock_result([], has_accounts=False)
    assert (silent.level, alone.level) == (CheckLevel.WARN, CheckLevel.OK)
    assert silent.detail.startswith("not checked: ")
    assert alone.detail.startswith("not checked: ")


def test_a_missing_page_is_a_warning(tmp_path: Path) -> None:
    assert page_result(tmp_path).level is CheckLevel.WARN
    (tmp_path / "index.html").touch()
    assert page_result(tmp_path).level is CheckLevel.OK


def test_the_archive_for_machines_runs() -> None:
    assert trackside_result().level is CheckLevel.OK


def test_the_summary_counts_each_level() -> None:
    assert summary([passed("a", ""), passed("b", ""), warned("c", "")]) == "2 ok, 1 warning, 0 failures"
    assert summary([failed("a", ""), failed("b", "")]) == "0 ok, 0 warnings, 2 failures"


def test_machines_that_no_sweep_has_looked_at_for_long_are_a_failure(tmp_path: Path) -> None:
    settings = load_settings({"STATIONMASTER_HOME": str(tmp_path)}, folder=tmp_path)
    with closing(Store(Database(settings.store_url))) as store:
        assert sweep(store, settings) == (CheckLevel.OK, "no sweep yet; no rented machine")
        store.jobs.submit(spec("lost"))
        rented = machine_of("lost", provider="vastai", held_at=store.now(), requested_at=store.now())
        store.rentals.put_without_lease(rented)
        assert sweep(store, settings) == (CheckLevel.OK, "no sweep yet")
        store.periodic.note_run("sweeper")
        assert sweep(store, settings)[0] is CheckLevel.OK
    with closing(Store(Database(settings.store_url, clock_offset=10 * 3600.0))) as store:
        level, detail = sweep(store, settings)
        assert (level, detail.endswith(", and 1 machine(s) may bill")) == (CheckLevel.FAIL, True)


def sweep(store: Store, settings: Settings) -> tuple[CheckLevel, str]:
    return next((one.level, one.detail) for one in worker_results(store, settings) if one.check == "sweep")
