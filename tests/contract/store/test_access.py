"""Tokens, sign-in codes, sessions and the audit log: the same on both engines."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from stationmaster.errors import NotFound
from stationmaster.model import Role, User
from stationmaster.store.access import StoredAudit, StoredToken
from stationmaster.store.engine import Database
from stationmaster.store.store import Store

OpenStore = Callable[..., Store]

MINUTE, DAY = 60.0, 86_400.0
ENTRY = StoredAudit(
    at=0.0, actor="ann", token_id="t1", action="POST /api/jobs", subject="cats", status=201, address="127.0.0.1"
)


@pytest.fixture
def store(store: Store) -> Store:
    store.users.put(User(name="ann"))
    return store


def add_token(store: Store, token_id: str = "t1", *, owner: str = "ann", seconds: float | None = None) -> StoredToken:
    return store.access.add_token(
        token_id, secret_sha256=f"hash of {token_id}", name="bot", owner=owner, rights=["read"], seconds=seconds
    )


def add_session(store: Store, secret: str = "cookie", *, owner: str = "ann", token_id: str | None = None) -> None:
    store.access.add_session(secret, owner, csrf_token="csrf", token_id=token_id, seconds=DAY)


def test_a_token_is_found_by_the_hash_of_its_secret_and_listed_newest_first(store: Store) -> None:
    first = add_token(store)
    add_token(store, "t2", owner="me")
    assert (first.owner, first.rights, first.expires_at, first.last_used_at) == ("ann", ("read",), None, None)
    assert store.access.valid_token("hash of t1") == first
    assert store.access.valid_token("hash of t3") is None
    assert [token.id for token in store.access.tokens()] == ["t2", "t1"]
    assert [token.id for token in store.access.tokens("ann")] == ["t1"]


def test_a_token_ends_when_it_expires(store: Store, open_store: OpenStore) -> None:
    token = add_token(store, seconds=DAY)
    assert token.expires_at == pytest.approx(token.created_at + DAY)
    assert open_store(later=DAY - 5).access.valid_token("hash of t1") is not None
    assert open_store(later=DAY + 5).access.valid_token("hash of t1") is None


def test_a_revoked_token_stays_revoked_since_the_first_time(store: Store, open_store: OpenStore) -> None:
    add_token(store)
    revoked = store.access.revoke_token("t1")
    assert revoked.revoked_at is not None
    assert store.access.valid_token("hash of t1") is None
    assert open_store(later=DAY).access.revoke_token("t1") == revoked
    for unknown in ("t2", "t\0"):
        with pytest.raises(NotFound, match="there is no token"):
            store.access.revoke_token(unknown)


def test_the_last_use_of_a_token_is_written_once_a_minute(store: Store, open_store: OpenStore) -> None:
    add_token(store)
    store.access.valid_token("hash of t1")
    first = store.access.token("t1").last_used_at
    assert first is not None
    open_store(later=MINUTE / 2).access.valid_token("hash of t1")
    assert store.access.token("t1").last_used_at == first
    open_store(later=2 * MINUTE).access.valid_token("hash of t1")
    assert store.access.token("t1").last_used_at == pytest.approx(first + 2 * MINUTE, abs=30)


def test_a_token_is_good_where_its_use_cannot_be_written(store: Store, store_url: str) -> None:
    add_token(store)
    read_only = sa.make_url(store_url)
    if read_only.get_backend_name() != "sqlite":
        read_only = read_only.update_query_dict({"options": "-c default_transaction_read_only=on"})
    with closing(Store(Database(read_only.render_as_string(hide_password=False)))) as second:
        if second.database.is_sqlite:
            sa.event.listen(second.database._writer, "checkout", _make_read_only)
        found = second.access.valid_token("hash of t1")
    assert found == store.access.token("t1")
    assert found is not None
    assert found.last_used_at is None


def _make_read_only(connection: Any, *_: object) -> None:
    connection.execute("PRAGMA query_only = ON")


def test_a_code_signs_one_browser_in_however_many_try_at_once(store: Store, open_store: OpenStore) -> None:
    store.access.add_code("code", "ann", seconds=600.0)
    stores = [open_store() for _ in range(4)]
    with ThreadPoolExecutor(len(stores)) as threads:
        won = list(threads.map(lambda one: one.access.use_code("code"), stores))
    assert sorted(won, key=str) == [None, None, None, "ann"]
    assert store.access.use_code("code") is None


def test_a_code_is_good_for_its_time(store: Store, open_store: OpenStore) -> None:
    expires_at = store.access.add_code("code", "ann", seconds=600.0)
    assert expires_at == pytest.approx(store.now() + 600, abs=30)
    assert open_store(later=601).access.use_code("code") is None
    assert store.access.use_code("code") is None, "who came too late used it up"


def test_a_session_lasts_until_it_expires_or_is_closed(store: Store, open_store: OpenStore) -> None:
    add_session(store)
    found = store.access.session("cookie")
    assert found is not None
    assert (found.owner, found.token_id, found.rights, found.csrf_token) == ("ann", None, None, "csrf")
    assert open_store(later=DAY + 1).access.session("cookie") is None
    store.access.remove_session("cookie")
    store.access.remove_session("cookie")
    assert store.access.session("cookie") is None


def test_a_session_that_a_token_opened_ends_with_the_token(store: Store, open_store: OpenStore) -> None:
    add_token(store, seconds=DAY / 2)
    add_session(store, token_id="t1")
    found = store.access.session("cookie")
    assert found is not None
    assert (found.token_id, found.rights) == ("t1", ("read",))
    assert open_store(later=DAY * 3 / 4).access.session("cookie") is None, "the token has expired"
    store.access.revoke_token("t1")
    assert store.access.session("cookie") is None


def test_whoever_is_removed_loses_all_access_and_a_namesake_does_not_get_it(store: Store) -> None:
    store.users.put(User(name="bob"))
    for owner, token_id in (("ann", "t1"), ("bob", "t2")):
        add_token(store, token_id, owner=owner)
        add_session(store, f"{owner}'s cookie", owner=owner)
        store.access.add_code(f"{owner}'s code", owner, seconds=600.0)
    store.users.remove("ann")
    store.users.put(User(name="ann", role=Role.ADMIN))
    assert store.access.valid_token("hash of t1") is None
    assert store.access.token("t1").revoked_at is not None
    assert store.access.session("ann's cookie") is None
    assert store.access.use_code("ann's code") is None
    assert store.access.valid_token("hash of t2") is not None
    assert store.access.session("bob's cookie") is not None
    assert store.access.use_code("bob's code") == "bob"


GIFTS: dict[str, Callable[[Store], object]] = {
    "token": lambda store: add_token(store, owner="eve"),
    "code": lambda store: store.access.add_code("code", "eve", seconds=600.0),
    "session": lambda store: add_session(store, owner="eve"),
}


@pytest.mark.parametrize("gift", GIFTS)
def test_nothing_is_made_for_someone_who_is_not_a_user(store: Store, gift: str) -> None:
    with pytest.raises(NotFound, match="there is no user eve"):
        GIFTS[gift](store)
    assert (store.access.tokens("eve"), store.access.session("cookie"), store.access.use_code("code")) == (
        [],
        None,
        None,
    )


def test_a_user_is_added_once_and_changed_only_while_they_exist(store: Store, open_store: OpenStore) -> None:
    stores = [open_store() for _ in range(4)]
    with ThreadPoolExecutor(len(stores)) as threads:
        added = list(threads.map(lambda one: one.users.add(User(name="bob")), stores))
        assert sorted(added) == [False, False, False, True]
        mute = ["start", "epoch", "stall", "completed"]
        list(threads.map(lambda one, kind: one.users.change("bob", _muting(kind)), stores, mute))
    found = store.users.find("bob")
    assert found is not None
    assert sorted(found.muted) == sorted(mute), "no change is lost"
    store.users.remove("bob")
    assert store.users.change("bob", _muting("start")) is None
    assert store.users.find("bob") is None


def _muting(kind: str) -> Callable[[User], User]:
    return lambda user: replace(user, muted=(*user.muted, kind))


def test_a_name_that_no_database_takes_is_nobody_s(store: Store) -> None:
    assert store.users.find("a\0b") is None
    assert store.users.change("a\0b", lambda user: user) is None
    with pytest.raises(NotFound):
        store.users.remove("a\0b")


def test_the_audit_log_is_read_from_the_newest_entry_page_by_page(store: Store) -> None:
    for subject in ("first", "second", "third", "caf\udce9 \0"):
        store.access.record(replace(ENTRY, subject=subject))
    store.access.record(replace(ENTRY, actor=None, status=401))
    newest, *others = store.access.audit(limit=3)
    assert (newest.actor, newest.status) == (None, 401)
    assert newest.at == pytest.approx(store.now(), abs=30)
    assert [entry.subject for entry in others] == ["caf? ?", "third"]
    before = store.access.audit(limit=3, before=others[-1].id)
    assert [entry.subject for entry in before] == ["second", "first"]
    assert [entry.subject for entry in store.access.audit(limit=1, actor="ann")] == ["caf? ?"]
