"""The store as one object: its nouns, opened on either engine with the schema brought up to date."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from stationmaster.store.alerts import Alerts
from stationmaster.store.bad_machines import BadMachines
from stationmaster.store.checkpoints import Checkpoints
from stationmaster.store.costs import Costs
from stationmaster.store.engine import Database
from stationmaster.store.events import Events
from stationmaster.store.finished_runs import FinishedRuns
from stationmaster.store.followed import Followed
from stationmaster.store.inbox import InboxNotes
from stationmaster.store.installation import read_id
from stationmaster.store.interests import Interests
from stationmaster.store.jobs import Jobs
from stationmaster.store.limiter import TurnLimiter
from stationmaster.store.logs import Logs
from stationmaster.store.models import Models
from stationmaster.store.outbox import Outbox
from stationmaster.store.periodic import Periodic
from stationmaster.store.proposals import Proposals
from stationmaster.store.readings import Readings
from stationmaster.store.rentals import Rentals
from stationmaster.store.schema import bring_up_to_date
from stationmaster.store.tickets import Tickets
from stationmaster.store.users import Users
from stationmaster.store.wake import Waker

if TYPE_CHECKING:
    from stationmaster.store.leases import Leases
    from stationmaster.store.ledger import Ledger
    from stationmaster.store.past_runs import PastRuns

DEFAULT_LOG_CAP_BYTES = 64 * 1024 * 1024


class Store:
    """All that Stationmaster remembers."""

    def __init__(self, database: Database, *, log_cap_bytes: int = DEFAULT_LOG_CAP_BYTES) -> None:
        bring_up_to_date(database)
        self.database = database
        self.installation_id = read_id(database)
        self.jobs = Jobs(database)
        self.proposals = Proposals(database)
        self._log_cap_bytes = log_cap_bytes
        self.rentals = Rentals(database)
        self.costs = Costs(database)
        self.finished_runs = FinishedRuns(database)
        self.events = Events(database)
        self.logs = Logs(database)
        self.readings = Readings(database)
        self.checkpoints = Checkpoints(database)
        self.tickets = Tickets(database)
        self.models = Models(database)
        self.alerts = Alerts(database)
        self.bad_machines = BadMachines(database)
        self.interests = Interests(database)
        self.periodic = Periodic(database)
        self.users = Users(database)
        self.outbox = Outbox(database)
        self.inbox = InboxNotes(database)
        self.followed = Followed(database)
        self.limiter = TurnLimiter(database)

    # What workers write with, and what only some commands ask for: imported by the first use.

    @cached_property
    def leases(self) -> Leases:
        from stationmaster.store.leases import Leases

        return Leases(self.database, log_cap_bytes=self._log_cap_bytes)

    @cached_property
    def ledger(self) -> Ledger:
        from stationmaster.store.ledger import Ledger

        return Ledger(self.database)

    @cached_property
    def past_runs(self) -> PastRuns:
        from stationmaster.store.past_runs import PastRuns

        return PastRuns(self.database)

    def now(self) -> float:
        return self.database.current_time()

    def waker(self, *, for_work: bool = False) -> Waker:
        return Waker(self.database, for_work=for_work)

    def close(self) -> None:
        self.database.close()
