"""Proposals in the store, on both engines."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from stationmaster.errors import NotFound
from stationmaster.model import State
from stationmaster.store.store import Store
from tests.contract.store.conftest import OpenStore
from tests.support.jobs.spine_values import spec

SHA256 = "ab" * 32
WANTED = replace(spec("job"), dataset=replace(spec().dataset, sha256=SHA256))
TERMS = {"name": "cats", "notes": ["a \x00 b"]}


def test_a_proposal_is_kept_and_becomes_its_job_once(store: Store) -> None:
    kept = store.proposals.put("p1", WANTED, TERMS, seconds=60)
    assert store.proposals.get("p1") == kept
    assert kept.expires_at == kept.created_at + 60
    first, again = store.proposals.submit("p1"), store.proposals.submit("p1")
    assert (first.created, again.created) == (True, False)
    assert (first.job.spec, first.job.state) == (WANTED, State.QUEUED)
    assert [event.kind for event in store.events.of_job("job")] == ["submitted"]


def test_two_who_submit_at_once_make_one_job(store: Store) -> None:
    store.proposals.put("p1", WANTED, TERMS, seconds=60)
    with ThreadPoolExecutor(4) as threads:
        done = list(threads.map(store.proposals.submit, ["p1"] * 8))
    assert sum(each.created for each in done) == 1


def test_an_expired_proposal_is_refused_forgotten_and_keeps_no_dataset(store: Store, open_store: OpenStore) -> None:
    store.proposals.put("p1", WANTED, TERMS, seconds=60)
    assert store.proposals.wants_dataset(SHA256)
    assert not store.proposals.wants_dataset("cd" * 32)
    later = open_store(later=61)
    for ask in (later.proposals.get, later.proposals.submit):
        with pytest.raises(NotFound, match="has expired"):
            ask("p1")
    assert later.jobs.listed(with_ended=True) == []
    assert not later.proposals.wants_dataset(SHA256)
    assert (store.proposals.remove_expired(), later.proposals.remove_expired()) == (0, 1)
    with pytest.raises(NotFound, match="no proposal"):
        store.proposals.get("p1")


def test_a_removed_proposal_is_gone(store: Store) -> None:
    store.proposals.put("p1", WANTED, TERMS, seconds=60)
    store.proposals.remove("p1")
    store.proposals.remove("p1")
    with pytest.raises(NotFound, match="no proposal"):
        store.proposals.submit("p1")
