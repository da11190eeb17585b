"""The sweeper as a process of its own: nothing that passes ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sqlalchemy.engine import Connection

from stationmaster.control.periodic.sweep import SEPARATE_SWEEP
from stationmaster.control.worker.service import sweep_repeatedly
from stationmaster.control.worker.settings_source import SettingsSource
from stationmaster.errors import StoreError
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from tests.support.asynchronous_tests import asynchronous, until


class AbsentDatabase(Database):
    """A database that answers no query while it is absent, as a server that is being restarted."""

    is_absent = False
    asked_in_vain = 0

    @contextmanager
    def read(self) -> Iterator[Connection]:
        if self.is_absent:
            self.asked_in_vain += 1
            raise StoreError("the store does not answer")
        with super().read() as connection:
            yield connection


@asynchronous
async def test_a_store_that_does_not_answer_for_a_while_ends_no_sweeper(tmp_path: Path) -> None:
    environ = {"STATIONMASTER_HOME": str(tmp_path), "STATIONMASTER_SWEEP__EVERY": "0.05"}
    source = SettingsSource(environ, folder=tmp_path)
    database = AbsentDatabase(source.settings.store_url)
    with closing(Store(database)) as store:
        sweeping = asyncio.create_task(sweep_repeatedly(source, store, once=False))
        await until(lambda: store.periodic.last_run_at(SEPARATE_SWEEP) is not None, what="a first sweep")
        database.is_absent = True
        await until(lambda: database.asked_in_vain > 1, what="sweeps in vain")
        database.is_absent = False
        back_at = store.now()
        await until(lambda: (store.periodic.last_run_at(SEPARATE_SWEEP) or 0.0) > back_at, what="a further sweep")
        sweeping.cancel()
        with suppress(asyncio.CancelledError):
            await sweeping
