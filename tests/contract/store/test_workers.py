"""Workers announce themselves and what they serve, on either engine."""

from __future__ import annotations

from collections.abc import Callable

from stationmaster.store.store import Store


def announce(store: Store, owner: str, *providers: str) -> None:
    store.workers.announce(owner, version="1.0", providers=providers, seconds=20.0)


def test_a_worker_is_alive_from_its_announcement_until_it_withdraws(store: Store) -> None:
    assert store.workers.alive() == []
    announce(store, "one", "loopback")
    announce(store, "one", "loopback", "vastai")
    (one,) = store.workers.alive()
    assert (one.owner, one.version) == ("one", "1.0")
    assert [one.serves(name) for name in ("vastai", "adopted:box", "vastai:work")] == [True, True, False]
    store.workers.withdraw("one")
    assert store.workers.alive() == []


def test_a_silent_worker_of_a_shared_store_no_longer_counts(store: Store, open_store: Callable[..., Store]) -> None:
    announce(store, "one", "loopback")
    later = open_store(later=21)
    alive = [one.owner for one in later.workers.alive()]
    assert alive == (["one"] if store.database.is_sqlite else []), "the lock tells whether the one of SQLite lives"
    announce(later, "two", "loopback")
    assert [one.owner for one in later.workers.alive()] == ["two"]


def test_workers_of_a_shared_store_are_alive_together(store: Store) -> None:
    announce(store, "one", "loopback")
    announce(store, "two", "vastai")
    alive = [one.owner for one in store.workers.alive()]
    assert alive == (["two"] if store.database.is_sqlite else ["one", "two"])
