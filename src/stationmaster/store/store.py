"""The store as one object with one attribute per noun, opened on either engine with the newest schema."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from stationmaster.settings import DEFAULT_LOG_CAP_BYTES, DEFAULT_METRICS_CAP_BYTES
from stationmaster.store.alerts import Alerts
from stationmaster.store.bad_machines import BadMachines
from stationmaster.store.checkpoints import Checkpoints
from stationmaster.store.costs import Costs
from stationmaster.store.engine import Database
from stationmaster.store.events import Cursors, Events
from stationmaster.store.inbox import InboxNotes
from stationmaster.store.jobs import Jobs
from stationmaster.store.limiter import TurnLimiter
from stationmaster.store.logs import Logs
from stationmaster.store.models import Models
from stationmaster.store.outbox import Outbox
from stationmaster.store.periodic import Periodic
from stationmaster.store.proposals import Proposals
from stationmaster.store.readings import Readings
from stationmaster.store.rentals import Rentals
from stationmaster.store.schema import bring_up_to_date, installation_id
from stationmaster.store.tickets import Tickets
from stationmaster.store.users import Users
from stationmaster.store.wake import Waker
from stationmaster.store.watchers import Watchers
from stationmaster.store.workers import Workers

if TYPE_CHECKING:
    from stationmaster.store.access import AccessRows
    from stationmaster.store.analyses import Analyses
    from stationmaster.store.dataset_uploads import DatasetUploads
    from stationmaster.store.leases import Leases
    from stationmaster.store.ledger import Ledger
    from stationmaster.store.news import NewsRows
    from stationmaster.store.runs import Runs
    from stationmaster.store.series import Series
    from stationmaster.store.submissions import Submissions


class Store:
    """Everything that Stationmaster stores."""

    def __init__(
        self,
        database: Database,
        *,
        log_cap_bytes: int = DEFAULT_LOG_CAP_BYTES,
        series_cap_bytes: int = DEFAULT_METRICS_CAP_BYTES,
    ) -> None:
        bring_up_to_date(database)
        self.database = database
        self.installation_id = installation_id(database)
        self.jobs = Jobs(database)
        self.proposals = Proposals(database)
        self._log_cap_bytes = log_cap_bytes
        self._series_cap_bytes = series_cap_bytes
        self.rentals = Rentals(database)
        self.costs = Costs(database)
        self.events = Events(database)
        self.logs = Logs(database)
        self.readings = Readings(database)
        self.checkpoints = Checkpoints(database)
        self.tickets = Tickets(database)
        self.models = Models(database)
        self.alerts = Alerts(database)
        self.bad_machines = BadMachines(database)
        self.watchers = Watchers(database)
        self.workers = Workers(database)
        self.periodic = Periodic(database)
        self.users = Users(database)
        self.outbox = Outbox(database)
        self.inbox = InboxNotes(database)
        self.cursors = Cursors(database)
        self.limiter = TurnLimiter(database)

    # Imported on first use: only workers and a few commands need these.

    @cached_property
    def leases(self) -> Leases:
        from stationmaster.store.leases import Leases

        return Leases(self.database, log_cap_bytes=self._log_cap_bytes, series_cap_bytes=self._series_cap_bytes)

    @cached_property
    def access(self) -> AccessRows:
        from stationmaster.store.access import AccessRows

        return AccessRows(self.database)

    @cached_property
    def analyses(self) -> Analyses:
        from stationmaster.store.analyses import Analyses

        return Analyses(self.database)

    @cached_property
    def dataset_uploads(self) -> DatasetUploads:
        from stationmaster.store.dataset_uploads import DatasetUploads

        return DatasetUploads(self.database)

    @cached_property
    def ledger(self) -> Ledger:
        from stationmaster.store.ledger import Ledger

        return Ledger(self.database)

    @cached_property
    def news(self) -> NewsRows:
        from stationmaster.store.news import NewsRows

        return NewsRows(self.database)

    @cached_property
    def runs(self) -> Runs:
        from stationmaster.store.runs import Runs

        return Runs(self.database)

    @cached_property
    def series(self) -> Series:
        from stationmaster.store.series import Series

        return Series(self.database)

    @cached_property
    def submissions(self) -> Submissions:
        from stationmaster.store.submissions import Submissions

        return Submissions(self.database)

    def now(self) -> float:
        return self.database.current_time()

    def waker(self, *, for_work: bool = False) -> Waker:
        return Waker(self.database, for_work=for_work)

    def close(self) -> None:
        self.database.close()
