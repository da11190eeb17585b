from __future__ import annotations

from stationmaster.model import BadMachine
from stationmaster.store.bad_machines import put
from stationmaster.store.store import Store


def test_a_host_that_failed_one_account_is_avoided_by_all_of_them(store: Store) -> None:
    with store.database.write() as connection:
        put(connection, [BadMachine(provider="vastai:work", machine_id="12345", why="no GPU")], now=store.now())
    assert store.bad_machines.avoided("vastai") == store.bad_machines.avoided("vastai:home") == {"12345"}
    assert store.bad_machines.avoided("simulator") == frozenset()
