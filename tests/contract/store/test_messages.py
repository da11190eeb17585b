"""People, messages on their way, and the inbox: the same on both engines."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from stationmaster.errors import LeaseLost, NotFound
from stationmaster.model import Alert, Note, User
from stationmaster.store.outbox import NewMessage
from stationmaster.store.store import Store
from tests.support.jobs.spine_values import spec

OpenStore = Callable[..., Store]


def message(cause: str = "event:1", user: str = "ann", **fields: Any) -> NewMessage:
    note = Note(key=cause, kind="stall", text="Stalled", priority="high", at=1.0, job_id=fields.pop("job_id", None))
    return NewMessage(cause=cause, user=user, purpose="owner", note=note, message={"text": "Stalled"}, **fields)


def test_a_person_is_kept_changed_and_removed(store: Store) -> None:
    ann = User(name="ann", telegram_id="17", inbox=True, muted=("epoch", "start"), quiet="22:00-07:00")
    store.users.put(User(name="bob", discord_id="4"))
    store.users.put(User(name="ann"))
    store.users.put(ann)
    assert store.users.find("ann") == ann
    assert [user.name for user in store.users.listed()] == ["ann", "bob"]
    store.users.remove("bob")
    assert store.users.find("bob") is None
    with pytest.raises(NotFound):
        store.users.remove("bob")


def test_a_message_is_stored_once_however_often_it_is_added(store: Store) -> None:
    assert store.outbox.add([message()]) == 1
    assert store.outbox.add([message(), message("event:2")]) == 1
    assert len(store.outbox.claim("me", limit=10, seconds=60)) == 2
    assert [note.key for note in store.inbox.of_user("ann")] == ["event:1", "event:2"]


def test_what_is_switched_off_is_only_in_the_inbox(store: Store) -> None:
    store.outbox.add([message(push=False)])
    assert store.outbox.claim("me", limit=10, seconds=60) == []
    assert store.inbox.count_unread("ann") == 1


def test_a_claimed_message_cannot_be_claimed_until_its_lease_expires(open_store: OpenStore) -> None:
    store, later = open_store(), open_store(later=120)
    store.outbox.add([message()])
    (first,) = store.outbox.claim("one", limit=10, seconds=60)
    assert store.outbox.claim("two", limit=10, seconds=60) == []
    (second,) = later.outbox.claim("two", limit=10, seconds=60)
    assert second.id == first.id
    with pytest.raises(LeaseLost):
        store.outbox.mark_sent(first, "telegram")
    later.outbox.mark_sent(second, "telegram")
    assert not store.outbox.has_due()


def test_a_postponed_message_comes_back_with_its_tries(open_store: OpenStore) -> None:
    store, later = open_store(), open_store(later=100)
    store.outbox.add([message(job_id="job")])
    (taken,) = store.outbox.claim("me", limit=1, seconds=60)
    store.outbox.postpone(taken, 90.0, problem="busy")
    assert store.outbox.claim("me", limit=1, seconds=60) == []
    assert store.outbox.count_pending() == 1
    (again,) = later.outbox.claim("me", limit=1, seconds=60)
    assert again.tries == 1
    later.outbox.postpone(again, 0.0, counts=False)
    (once_more,) = later.outbox.claim("me", limit=1, seconds=60)
    assert once_more.tries == 1
    later.outbox.mark_failed(once_more, "no channel")
    assert store.outbox.of_job("job")[0]["state"] == "FAILED"


def test_two_claimers_at_once_never_get_the_same_message(open_store: OpenStore) -> None:
    store = open_store()
    store.outbox.add([message(f"event:{number}") for number in range(40)])
    got: list[list[int]] = [[], []]

    def take(which: int) -> None:
        mine = open_store()
        while claimed := mine.outbox.claim(f"w{which}", limit=3, seconds=60):
            got[which] += [each.id for each in claimed]

    threads = [threading.Thread(target=take, args=(which,)) for which in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got[0] + got[1]) == len(set(got[0] + got[1])) == 40


def test_the_inbox_counts_what_was_not_read(store: Store) -> None:
    store.outbox.add([message("event:1"), message("event:2"), message("event:3", user="bob")])
    first, _second = store.inbox.of_user("ann")
    assert first.id is not None
    store.inbox.mark_read("ann", up_to=first.id)
    assert (store.inbox.count_unread("ann"), store.inbox.count_unread("bob")) == (1, 1)
    assert [note.key for note in store.inbox.of_user("ann", unread_only=True)] == ["event:2"]


def test_a_position_never_goes_back(store: Store) -> None:
    assert store.cursors.position("events") == 0
    store.cursors.advance("events", 7)
    store.cursors.advance("events", 5)
    assert store.cursors.position("events") == 7


def test_events_and_alerts_of_all_jobs_can_be_followed(store: Store) -> None:
    store.jobs.submit(spec("a"))
    store.jobs.submit(spec("b"))
    found = store.events.after(0, kinds=["submitted"])
    assert [event.job_id for event in found] == ["a", "b"]
    assert store.events.after(found[0].seq, kinds=["submitted"]) == found[1:]
    assert store.events.after(0, kinds=["outcome"]) == []
    store.alerts.raise_without_lease(Alert(kind="release", message="stuck", job_id="a"))
    ((number, alert),) = store.alerts.after(0)
    assert (alert.kind, store.alerts.after(number)) == ("release", [])
