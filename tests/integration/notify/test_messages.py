"""What happens to jobs reaches the people whom it concerns, once, by the ways they chose."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import structlog

from stationmaster.library import TrainingNotifier
from stationmaster.model import Alert, User
from stationmaster.store.store import Store
from stationmaster.store.writes import NewEvent
from tests.support.asynchronous_tests import asynchronous
from tests.support.jobs.notify_bench import ENDED, FLAGGED, MILESTONE, happen, notifier_of, opened, tell
from tests.support.servers.messenger_server import TELEGRAM_BLOCKED, Answer, MessengerServer, telegram_busy

OpenStore = Callable[..., Store]
DOWN = Answer(status=502, document="")


@asynchronous
async def test_the_single_user_is_told_in_order_and_once(store: Store, server: MessengerServer, tmp_path: Path) -> None:
    environ = {**server.environ, "STATIONMASTER_NOTIFY__TELEGRAM_ID": "17"}
    happen(store, "job", FLAGGED, name="<b>*_")
    happen(store, "job", ENDED)
    for _ in range(3):
        await tell(store, tmp_path, environ)
    first, second = server.texts()
    assert first.startswith("⚠️ Training Stall Detected\n\nJob: <b>*_\nProgress: 230/400 (57.5%)\n")
    assert second.startswith("🛑 Training Terminated\n\nJob: <b>*_\nReason: Stall detected, grace period expired\n")
    assert [(row["state"], row["channel"]) for row in store.outbox.of_job("job")] == [("SENT", "telegram")] * 2
    assert store.inbox.count_unread("me") == 2


@asynchronous
async def test_each_owner_is_told_of_their_own_jobs(store: Store, server: MessengerServer, tmp_path: Path) -> None:
    store.users.put(User(name="ann", telegram_id="17"))
    store.users.put(User(name="bob", discord_id="4"))
    happen(store, "a", FLAGGED, owner="ann", name="hers")
    happen(store, "b", FLAGGED, owner="bob", name="his")
    await tell(store, tmp_path, server.environ)
    got = {(message.service, message.recipient): message.text.splitlines()[2] for message in server.received}
    assert got == {("telegram", "17"): "Job: hers", ("discord", "4"): "Job: his"}


@asynchronous
async def test_a_person_who_blocked_the_bot_is_told_through_discord(
    store: Store, server: MessengerServer, tmp_path: Path
) -> None:
    store.users.put(User(name="ann", telegram_id="17", discord_id="4"))
    server.troubles["telegram"] = [TELEGRAM_BLOCKED]
    happen(store, "job", FLAGGED, owner="ann")
    await tell(store, tmp_path, server.environ)
    assert len(server.texts("discord")) == 1
    assert store.outbox.of_job("job")[0]["channel"] == "discord"


@asynchronous
async def test_an_owner_without_a_way_is_warned_of_and_has_the_inbox(
    store: Store, server: MessengerServer, tmp_path: Path
) -> None:
    happen(store, "job", FLAGGED, owner="nobody")
    with structlog.testing.capture_logs() as logs:
        await tell(store, tmp_path, server.environ)
    assert "No notification channel for user nobody" in [entry["event"] for entry in logs]
    assert store.outbox.of_job("job")[0]["state"] == "FAILED"
    assert store.inbox.count_unread("nobody") == 1


@asynchronous
async def test_a_rate_limit_is_waited_out_and_keeps_the_order(
    open_store: OpenStore, server: MessengerServer, tmp_path: Path
) -> None:
    environ = {**server.environ, "STATIONMASTER_NOTIFY__TELEGRAM_ID": "17"}
    store = open_store()
    happen(store, "job", FLAGGED, ENDED)
    server.troubles["telegram"] = [telegram_busy(60)]
    await tell(store, tmp_path, environ)
    await tell(open_store(later=10), tmp_path, environ)
    assert len(server.calls) == 1
    await tell(open_store(later=200), tmp_path, environ)
    assert [text.splitlines()[0] for text in server.texts()] == ["⚠️ Training Stall Detected", "🛑 Training Terminated"]


@asynchronous
async def test_a_service_that_is_down_is_asked_again_and_then_the_inbox_counts(
    open_store: OpenStore, server: MessengerServer, tmp_path: Path
) -> None:
    environ = {**server.environ, "STATIONMASTER_NOTIFY__TELEGRAM_ID": "17"}
    happen(open_store(), "job", FLAGGED)
    server.troubles["telegram"] = [DOWN] * 100
    for later in (0, 10, 100, 1000, 10_000, 100_000, 1_000_000):
        await tell(open_store(later=later), tmp_path, environ)
    (row,) = open_store().outbox.of_job("job")
    assert (row["state"], row["channel"]) == ("SENT", "inbox")
    assert len(server.calls) == 6


@asynchronous
async def test_what_can_wait_is_held_back_in_quiet_hours(
    open_store: OpenStore, server: MessengerServer, tmp_path: Path
) -> None:
    store = open_store()
    night = -(store.now() % 86_400) + 23 * 3600  # so that this store's clock shows 23:00
    store.users.put(User(name="ann", telegram_id="17", quiet="22:00-07:00"))
    happen(store, "job", MILESTONE, FLAGGED, owner="ann")
    await tell(open_store(later=night), tmp_path, server.environ)
    assert [text.splitlines()[0] for text in server.texts()] == ["⚠️ Training Stall Detected"]
    assert store.inbox.count_unread("ann") == 2
    await tell(open_store(later=night + 7.9 * 3600), tmp_path, server.environ)
    assert len(server.texts()) == 1
    await tell(open_store(later=night + 8.1 * 3600), tmp_path, server.environ)
    assert server.texts()[1].startswith("📈 Training at 25%")


@asynchronous
async def test_a_kind_that_is_switched_off_stays_in_the_inbox(
    store: Store, server: MessengerServer, tmp_path: Path
) -> None:
    store.users.put(User(name="ann", telegram_id="17", muted=("milestone",)))
    happen(store, "job", MILESTONE, FLAGGED, owner="ann")
    await tell(store, tmp_path, server.environ)
    assert [text.splitlines()[0] for text in server.texts()] == ["⚠️ Training Stall Detected"]
    assert store.inbox.count_unread("ann") == 2


@asynchronous
async def test_operators_get_alerts_by_all_their_ways(store: Store, server: MessengerServer, tmp_path: Path) -> None:
    environ = {
        **server.environ,
        "STATIONMASTER_NOTIFY__OPERATORS__TELEGRAM_ID": "1",
        "STATIONMASTER_NOTIFY__OPERATORS__SLACK_URL": f"{server.url}/slack/services/x",
        "STATIONMASTER_NOTIFY__OPERATORS__WEBHOOK_URL": f"{server.url}/webhook/in",
        "STATIONMASTER_NOTIFY__OPERATORS__WEBHOOK_SECRET": "s",
    }
    happen(store, "job", FLAGGED)
    store.alerts.raise_without_lease(Alert(kind="soft_limit", message="has run 90 min (estimate 60 min)", job_id="job"))
    store.alerts.raise_without_lease(Alert(kind="stall", message="told to the owner already", job_id="job"))
    await tell(store, tmp_path, environ)
    assert sorted(message.service for message in server.received) == ["slack", "telegram", "webhook"]
    assert all("Issue: has run 90 min" in message.text for message in server.received)
    assert store.inbox.count_unread("operators") == 1


@asynchronous
async def test_without_operators_the_single_user_hears_of_a_failed_release(
    store: Store, server: MessengerServer, tmp_path: Path
) -> None:
    store.alerts.raise_without_lease(Alert(kind="release", message="it may be billing"))
    await tell(store, tmp_path, {**server.environ, "STATIONMASTER_NOTIFY__TELEGRAM_ID": "17"})
    (text,) = server.texts()
    assert text.startswith("⚠️ Could not release a machine")


@asynchronous
async def test_an_event_that_cannot_be_told_does_not_keep_others_from_being_told(
    store: Store, server: MessengerServer, tmp_path: Path
) -> None:
    happen(store, "job", NewEvent(kind="milestone", payload={}), FLAGGED)
    await tell(store, tmp_path, {**server.environ, "STATIONMASTER_NOTIFY__TELEGRAM_ID": "17"})
    assert len(server.texts()) == 1


@asynchronous
async def test_an_old_position_is_kept_behind_and_repeats_do_no_harm(
    open_store: OpenStore, server: MessengerServer, tmp_path: Path
) -> None:
    environ = {**server.environ, "STATIONMASTER_NOTIFY__TELEGRAM_ID": "17"}
    store, later = open_store(), open_store(later=300)
    happen(store, "job", FLAGGED)
    await tell(store, tmp_path, environ)
    assert store.cursors.position("events") == 0
    await tell(later, tmp_path, environ)
    assert store.cursors.position("events") == store.events.after(0, kinds=["stall_flagged"])[0].seq
    await tell(later, tmp_path, environ)
    assert len(server.texts()) == 1


@pytest.mark.parametrize(
    ("user", "result"),
    [("ann", ("telegram", True)), ("bob", ("inbox", True)), ("eve", ("none", False)), ("stranger", ("none", False))],
)
@asynchronous
async def test_programs_can_tell_people_at_once(
    store: Store, server: MessengerServer, tmp_path: Path, user: str, result: tuple[str, bool]
) -> None:
    store.users.put(User(name="ann", telegram_id="17"))
    store.users.put(User(name="bob", inbox=True))
    store.users.put(User(name="eve"))
    messaging = opened(store, tmp_path, server.environ)
    try:
        with structlog.testing.capture_logs() as logs:
            told = await TrainingNotifier(store, messaging).notify(user, "hello", priority="high", job_id="job")
    finally:
        await messaging.close()
    assert told == {"channel": result[0], "success": result[1]}
    warned = f"No notification channel for user {user}" in [entry["event"] for entry in logs]
    assert warned == (not result[1])
    assert [note.text for note in store.inbox.of_user(user)] == ["hello"]


@asynchronous
async def test_two_notifiers_in_one_process_tell_once(store: Store, server: MessengerServer, tmp_path: Path) -> None:
    import asyncio

    messaging = opened(store, tmp_path, {**server.environ, "STATIONMASTER_NOTIFY__TELEGRAM_ID": "17"})
    for number in range(5):
        happen(store, f"job-{number}", FLAGGED)
    try:
        await asyncio.gather(*(notifier_of(messaging, store).run_round(f"worker-{number}") for number in range(3)))
    finally:
        await messaging.close()
    assert len(server.texts()) == 5
