"""The protocol of one installation: its nouns."""

from __future__ import annotations

from typing import Protocol

from stationmaster.station.analysis import Analyses
from stationmaster.station.artifacts import Artifacts
from stationmaster.station.audit import Audit
from stationmaster.station.checks import Checks
from stationmaster.station.costs import Costs
from stationmaster.station.credits import Credits
from stationmaster.station.dataset_uploads import DatasetUploads
from stationmaster.station.datasets import Datasets
from stationmaster.station.history import Events, Logs, Readings
from stationmaster.station.instances import Instances
from stationmaster.station.jobs import Jobs
from stationmaster.station.keys import Keys
from stationmaster.station.metrics import Metrics
from stationmaster.station.models import Models
from stationmaster.station.monitoring import Monitoring
from stationmaster.station.notifications import Notifications
from stationmaster.station.offers import Offers
from stationmaster.station.overview import Overviews
from stationmaster.station.proposals import Proposals
from stationmaster.station.recipes import Recipes
from stationmaster.station.tokens import Tokens
from stationmaster.station.users import Users


class Station(Protocol):
    """One installation. For problems that a person can cause, every method raises a StationmasterError and nothing
    else.
    """

    @property
    def proposals(self) -> Proposals: ...
    @property
    def jobs(self) -> Jobs: ...
    @property
    def overview(self) -> Overviews: ...
    @property
    def events(self) -> Events: ...
    @property
    def logs(self) -> Logs: ...
    @property
    def readings(self) -> Readings: ...
    @property
    def metrics(self) -> Metrics: ...
    @property
    def analyses(self) -> Analyses: ...
    @property
    def artifacts(self) -> Artifacts: ...
    @property
    def costs(self) -> Costs: ...
    @property
    def models(self) -> Models: ...
    @property
    def users(self) -> Users: ...
    @property
    def tokens(self) -> Tokens: ...
    @property
    def audit(self) -> Audit: ...
    @property
    def credits(self) -> Credits: ...
    @property
    def notifications(self) -> Notifications: ...
    @property
    def offers(self) -> Offers: ...
    @property
    def recipes(self) -> Recipes: ...
    @property
    def datasets(self) -> Datasets: ...
    @property
    def dataset_uploads(self) -> DatasetUploads: ...
    @property
    def instances(self) -> Instances: ...
    @property
    def keys(self) -> Keys: ...
    @property
    def checks(self) -> Checks: ...
    @property
    def monitoring(self) -> Monitoring: ...

    def now(self) -> float:
        """The time of the store, which all times of jobs use."""

    def close(self) -> None: ...
