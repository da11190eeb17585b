"""Money stays within what people set, also where they set it late, remove jobs, repeat them, or say nothing at all."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from stationmaster.model import EntryKind, State
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from tests.support.commands.cli_runs import QUICK, Home, Ran
from tests.support.jobs.local_world import write_pictures
from tests.support.servers.postgres import PostgresServer
from tests.support.waiting import until

PRICE = "36"  # an hour on this computer, so that a second is a cent
BILLING_ON = "[billing]\nenabled = true\n"
ENDLESS = ("-p", "fault=stall", "-p", "fault_at=5")
GRANT = ("credits", "grant", "me", "50", "--reason", "to begin with")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("pictures"))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with Home(tmp_path) as opened:
        opened.environ["STATIONMASTER_LOOPBACK__PRICE_PER_HOUR"] = PRICE
        opened.path.mkdir()
        yield opened


def train(home: Home, pictures: Path, job_id: str, *more: str, **environ: str) -> Ran:
    words = ("train", "--recipe", "tiny-lora@1", "--dataset", str(pictures), "--id", job_id, "--yes")
    return home.run(*words, *QUICK, *more, cwd=home.folder, **environ)


def configure(home: Home, text: str) -> None:
    (home.path / "config.toml").write_text(text)


def is_held_for(home: Home, job_id: str) -> bool:
    return any(entry.kind is EntryKind.HOLD for entry in home.store.ledger.entries(job=job_id))


def is_at_work(home: Home, job_id: str) -> bool:
    return home.job(job_id).state not in (State.QUEUED, State.PROVISIONING)


def unusable_settings(home: Home) -> list[str]:
    return [alert.message for alert in home.store.alerts.open() if alert.kind == "settings"]


def cancel(home: Home, *job_ids: str) -> None:
    for job_id in job_ids:
        assert home.run("cancel", job_id, "--yes").code == 0
    until(lambda: all(home.job(job_id).state is State.ENDED for job_id in job_ids), what="all have ended")


# 1. A live worker keeps to the settings of today.


def test_a_live_worker_holds_credits_from_the_moment_that_billing_is_switched_on(home: Home, pictures: Path) -> None:
    assert train(home, pictures, "free", *ENDLESS).code == 0
    until(lambda: is_at_work(home, "free"), what="a first training, which nobody pays for")
    worker = home.worker_pid()
    configure(home, BILLING_ON)
    assert home.run(*GRANT).code == 0
    assert train(home, pictures, "paid", *ENDLESS).code == 0
    until(lambda: is_at_work(home, "paid"), what="a second training")
    assert is_held_for(home, "paid")
    assert not is_held_for(home, "free")
    assert home.worker_pid() == worker, "the worker read the file itself"
    assert home.job("free").attempt == 1, "the first training did not notice"
    cancel(home, "free", "paid")


def test_a_job_that_waits_while_the_file_changes_is_claimed_by_what_it_says_now(home: Home, pictures: Path) -> None:
    assert home.run(*GRANT, STATIONMASTER_BILLING__ENABLED="1").code == 0
    configure(home, "[worker.per_provider]\nloopback = 0\n")  # everything waits
    assert train(home, pictures, "waits", *ENDLESS).code == 0
    assert home.worker_pid() is not None
    assert home.job("waits").state is State.QUEUED
    configure(home, BILLING_ON)
    until(lambda: is_at_work(home, "waits"), what="the training")
    assert is_held_for(home, "waits")
    cancel(home, "waits")


def test_a_background_worker_makes_room_for_the_environment_of_a_later_command(home: Home, pictures: Path) -> None:
    assert train(home, pictures, "free", *ENDLESS).code == 0
    until(lambda: is_at_work(home, "free"), what="a first training")
    worker = home.worker_pid()
    home.environ["STATIONMASTER_BILLING__ENABLED"] = "1"
    assert home.run(*GRANT).code == 0
    ran = train(home, pictures, "paid", *ENDLESS)
    assert (ran.code, "billing.enabled" in ran.err) == (0, True), ran.err
    until(lambda: is_at_work(home, "paid"), what="a second training")
    assert is_held_for(home, "paid")
    assert home.worker_pid() not in (None, worker)
    assert home.job("free").attempt == 1, "the first training did not notice"
    cancel(home, "free", "paid")


def test_a_worker_in_a_terminal_gets_no_job_whose_money_it_would_not_count(home: Home, pictures: Path) -> None:
    running = home.start("worker")
    try:
        worker = until(lambda: home.worker_pid(), what="a worker")
        assert home.run(*GRANT, STATIONMASTER_BILLING__ENABLED="1").code == 0
        refused = train(home, pictures, "paid", *ENDLESS, STATIONMASTER_BILLING__ENABLED="1")
        assert (refused.code, "billing.enabled" in refused.err, "hint:" in refused.err) == (2, True, True), refused.err
        assert home.store.jobs.listed(with_ended=True) == []
        configure(home, BILLING_ON)
        assert train(home, pictures, "paid", *ENDLESS).code == 0
        until(lambda: is_at_work(home, "paid"), what="the training")
        assert is_held_for(home, "paid")
        assert home.worker_pid() == worker
        cancel(home, "paid")
    finally:
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=150)


def test_settings_with_a_typo_are_told_and_end_no_worker(home: Home, pictures: Path) -> None:
    assert train(home, pictures, "a", *ENDLESS).code == 0
    until(lambda: is_at_work(home, "a"), what="a training")
    worker = home.worker_pid()
    configure(home, "[billing]\nenabeld = true\n")
    (said,) = until(lambda: unusable_settings(home), what="an alert")
    assert "enabeld" in said
    assert home.worker_pid() == worker
    configure(home, "[worker]\nlinger = '2s'\n")
    until(lambda: not unusable_settings(home), what="the alert is over")
    assert home.worker_pid() == worker
    cancel(home, "a")
    until(lambda: home.worker_pid() is None, what="the worker has left by itself")


def test_a_worker_told_to_leave_after_a_change_leaves(home: Home, pictures: Path) -> None:
    assert train(home, pictures, "a", *ENDLESS).code == 0
    until(lambda: is_at_work(home, "a"), what="a training")
    worker = home.worker_pid()
    assert worker is not None
    before = (home.path / "worker.lock").stat().st_mtime_ns
    configure(home, "[monitoring]\ngrace_period = '20m'\n")
    until(lambda: (home.path / "worker.lock").stat().st_mtime_ns != before, what="it was taken up")
    os.kill(worker, signal.SIGTERM)
    until(lambda: home.worker_pid() is None, what="the worker has left")
    cancel(home, "a")  # which starts another one


def test_workers_that_share_a_server_each_read_their_own_file(
    home: Home, pictures: Path, postgres_server: PostgresServer
) -> None:
    url = str(postgres_server.new_database())
    home.environ |= {"STATIONMASTER_DATABASE_URL": url, "STATIONMASTER_WORKER__LINGER": "60s"}
    running = home.start("worker")
    try:
        assert home.run(*GRANT, STATIONMASTER_BILLING__ENABLED="1").code == 0
        assert train(home, pictures, "free", *ENDLESS).code == 0  # which leaves a second worker behind
        with closing(Store(Database(url))) as store:
            until(lambda: store.jobs.get("free").state is State.EXECUTING, what="a first training")
            configure(home, BILLING_ON)
            paid = {"b", "c", "d"}
            for job_id in paid:
                assert train(home, pictures, job_id, *ENDLESS).code == 0
            until(lambda: all(store.jobs.get(job_id).attempt for job_id in paid), what="all are claimed")
            assert {entry.job for entry in store.ledger.entries() if entry.kind is EntryKind.HOLD} == paid
            for job_id in ("free", *paid):
                assert home.run("cancel", job_id, "--yes").code == 0
            until(lambda: not store.jobs.count_needing_a_worker(), what="all have ended")
    finally:
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=150)


# 2. What a removed job cost still counts.


def test_removing_a_job_gives_nothing_of_the_day_s_cap_back(home: Home, pictures: Path) -> None:
    cap = {"STATIONMASTER_LIMITS__DAILY_SPEND": "100"}
    assert train(home, pictures, "first", "--watch", **cap).code == 0
    spent = home.store.ledger.committed_today("me")
    assert spent > 0
    assert home.run("jobs", "rm", "first", "--yes").code == 0
    assert home.store.ledger.committed_today("me") == spent
    quote = home.run("estimate", "tiny-lora@1", "--steps", "20", "-p", "seconds_per_step=0", "--json").json()
    tight = {"STATIONMASTER_LIMITS__DAILY_SPEND": str(quote["cost_usd"]["expected"] + spent / 2_000_000)}
    ran = train(home, pictures, "second", "--dry-run", "--json", **tight)
    assert any("waits in the queue" in note for note in ran.json()["notes"]), ran.out


# 3. A retry is paid for like any other job.


def test_a_retry_without_credits_is_refused_like_the_training_itself(home: Home, pictures: Path) -> None:
    assert train(home, pictures, "first", "--watch").code == 0
    home.environ["STATIONMASTER_BILLING__ENABLED"] = "1"
    refused = train(home, pictures, "second")
    again = home.run("retry", "first", "--id", "third", "--yes")
    assert (again.code, again.err) == (refused.code, refused.err)
    assert (again.code, "me has only $0.00 of credits" in again.err) == (60, True)
    assert [job.id for job in home.store.jobs.listed(with_ended=True)] == ["first"]


# 4. A job's own limits.


def test_the_money_limit_is_twice_the_high_quote(home: Home, pictures: Path) -> None:
    plan = train(home, pictures, "a", "-p", "seconds_per_step=2", "--dry-run", "--json").json()
    assert plan["quote"]["cost_usd"]["high"] > 0.25
    assert plan["limits"]["max_spend_usd"] == pytest.approx(2 * plan["quote"]["cost_usd"]["high"], abs=2e-6)
    assert plan["limits"]["max_spend_note"] is None


def test_a_larger_limit_than_that_is_explained_where_it_is_shown(home: Home, pictures: Path) -> None:
    plan = train(home, pictures, "a", "--dry-run", "--json").json()
    twice = f"${2 * plan['quote']['cost_usd']['high']:.2f}"
    why = f"the minimum limit; twice the high estimate would be {twice}"
    most = pytest.approx(1.2 * plan["quote"]["price_per_hour_usd"])
    assert plan["limits"] == {
        "max_price_per_hour_usd": most,
        "max_hours": 4.0,
        "max_seconds": 14_400.0,
        "max_spend_usd": 0.5,
        "max_spend_note": why,
    }
    assert f"$0.50 ({why})" in train(home, pictures, "a", "--dry-run").out


def test_a_training_above_the_cap_of_four_hours_is_warned_of(home: Home, pictures: Path) -> None:
    long = ("-p", "seconds_per_step=900")
    said = "warning: the estimate of 5h"
    rate = ("--max-spend", "1000")
    assert said in train(home, pictures, "a", *long, "--dry-run").out
    plan = train(home, pictures, "a", *long, "--dry-run", "--json").json()
    assert any(note.startswith(said) for note in plan["notes"])
    ran = train(home, pictures, "a", *long, *rate, "--json").json()
    assert any(note.startswith(said) for note in ran["notes"])
    cancel(home, "a")
    guess = ("estimate", "tiny-lora@1", "--steps", "20", *long)
    assert said in home.run(*guess).out
    assert any(note.startswith(said) for note in home.run(*guess, "--json").json()["notes"])
