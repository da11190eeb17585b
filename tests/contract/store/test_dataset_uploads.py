"""Uploads of datasets in the store: limits that several servers share."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from stationmaster.errors import TooLarge
from stationmaster.store.store import Store

OpenStore = Callable[..., Store]


def test_servers_that_charge_at_once_stay_within_the_limit(open_store: OpenStore) -> None:
    first = open_store().dataset_uploads
    for upload, owner in (("a", "ann"), ("b", "ann"), ("c", "bob")):
        first.add(upload, owner=owner, name="cats")
    first.charge("c", 1000, most=1000, most_of_owner=1000)

    def charge(upload: str) -> int:
        """How often this server may charge 10 bytes for the upload."""
        uploads, count = open_store().dataset_uploads, 0
        for _ in range(10):
            try:
                uploads.charge(upload, 10, most=100, most_of_owner=150)
            except TooLarge:
                continue
            count += 1
        return count

    with ThreadPoolExecutor(4) as threads:
        counts = list(threads.map(charge, ["a", "b", "a", "b"]))
    assert sum(counts) == 15, "all that ann may have, and not more"
    charged = [found.charged_bytes for upload in "abc" if (found := first.find(upload)) is not None]
    assert sum(charged[:2]) == 150
    assert max(charged[:2]) <= 100
    assert charged[2] == 1000, "what bob has is bob's"
    first.release("a", charged[0])
    assert charge("b") == (100 - charged[1]) // 10


def test_an_archive_is_found_again_by_its_owner_only(store: Store) -> None:
    uploads, sha256 = store.dataset_uploads, "0" * 64
    uploads.add("a", owner="ann", name="cats", sha256=sha256, size=10)
    assert [one.id for one in uploads.same("ann", sha256=sha256, size=10)] == ["a"]
    assert uploads.same("bob", sha256=sha256, size=10) == []
    assert uploads.same("ann", sha256=sha256, size=11) == []
    uploads.remove("a")
    assert uploads.find("a") is None
    with pytest.raises(TooLarge):
        uploads.charge("a", 11, most=10, most_of_owner=10)
