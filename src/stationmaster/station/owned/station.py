"""The station of one caller: each noun limited to what is theirs."""

from __future__ import annotations

from functools import cached_property
from typing import Any, cast

from stationmaster.errors import Forbidden
from stationmaster.model import Caller, Right
from stationmaster.station.analysis import Analyses
from stationmaster.station.artifacts import Artifacts
from stationmaster.station.base import Station
from stationmaster.station.checks import Checks
from stationmaster.station.history import Events, Logs, Readings
from stationmaster.station.instances import Instances
from stationmaster.station.keys import Keys
from stationmaster.station.metrics import Metrics
from stationmaster.station.models import Models
from stationmaster.station.monitoring import Monitoring
from stationmaster.station.owned.allowances import NOTHING_MORE, Allowances
from stationmaster.station.owned.analyses import OwnedAnalyses
from stationmaster.station.owned.artifacts import OwnedArtifacts
from stationmaster.station.owned.audit import OwnedAudit
from stationmaster.station.owned.costs import OwnedCosts
from stationmaster.station.owned.credits import OwnedCredits
from stationmaster.station.owned.dataset_uploads import OwnedDatasetUploads
from stationmaster.station.owned.datasets import OwnedDatasets
from stationmaster.station.owned.history import OwnedEvents, OwnedLogs, OwnedReadings
from stationmaster.station.owned.jobs import OwnedJobs
from stationmaster.station.owned.metrics import OwnedMetrics
from stationmaster.station.owned.models import OwnedModels
from stationmaster.station.owned.notifications import OwnedNotifications
from stationmaster.station.owned.offers import OwnedOffers
from stationmaster.station.owned.overseeing import OverseeingStation
from stationmaster.station.owned.overview import OwnedOverviews
from stationmaster.station.owned.proposals import OwnedProposals
from stationmaster.station.owned.recipes import OwnedRecipes
from stationmaster.station.owned.tokens import OwnedTokens
from stationmaster.station.owned.users import OwnedUsers


class OwnedStation:
    def __init__(self, caller: Caller, station: Station, allowances: Allowances = NOTHING_MORE) -> None:
        self._caller = caller
        self._all = station
        self._allowances = allowances

    @cached_property
    def proposals(self) -> OwnedProposals:
        return OwnedProposals(
            self._caller,
            self._all.proposals,
            jobs=self._all.jobs,
            own_jobs=self.jobs,
            require_upload=self.dataset_uploads.find,
            allowances=self._allowances,
        )

    @cached_property
    def jobs(self) -> OwnedJobs:
        return OwnedJobs(self._caller, self._all.jobs)

    @cached_property
    def overview(self) -> OwnedOverviews:
        return OwnedOverviews(self._caller, self._all.overview)

    @cached_property
    def events(self) -> Events:
        return OwnedEvents(self._caller, self._all)

    @cached_property
    def logs(self) -> Logs:
        return OwnedLogs(self._caller, self._all)

    @cached_property
    def readings(self) -> Readings:
        return OwnedReadings(self._caller, self._all)

    @cached_property
    def metrics(self) -> Metrics:
        return OwnedMetrics(self._caller, self._all.metrics, self._all.jobs)

    @cached_property
    def analyses(self) -> Analyses:
        return OwnedAnalyses(self._caller, self._all.analyses, self._all.jobs)

    @cached_property
    def artifacts(self) -> Artifacts:
        return OwnedArtifacts(self._caller, self._all.artifacts, self._all.jobs)

    @cached_property
    def costs(self) -> OwnedCosts:
        return OwnedCosts(self._caller, self._all.costs, self._all.jobs)

    @cached_property
    def models(self) -> Models:
        return OwnedModels(self._caller, self._all.models)

    @cached_property
    def users(self) -> OwnedUsers:
        return OwnedUsers(self._caller, self._all.users)

    @cached_property
    def tokens(self) -> OwnedTokens:
        return OwnedTokens(self._caller, self._all)

    @cached_property
    def audit(self) -> OwnedAudit:
        return OwnedAudit(self._caller, self._all.audit)

    @cached_property
    def credits(self) -> OwnedCredits:
        return OwnedCredits(self._caller, self._all.credits)

    @cached_property
    def notifications(self) -> OwnedNotifications:
        return OwnedNotifications(self._caller, self._all.notifications)

    @cached_property
    def offers(self) -> OwnedOffers:
        return OwnedOffers(self._allowances, self._all.offers)

    @cached_property
    def recipes(self) -> OwnedRecipes:
        return OwnedRecipes(self._all.recipes)

    @cached_property
    def datasets(self) -> OwnedDatasets:
        return OwnedDatasets(self._caller, self._all.datasets, self.dataset_uploads)

    @cached_property
    def dataset_uploads(self) -> OwnedDatasetUploads:
        return OwnedDatasetUploads(self._caller, self._all.dataset_uploads)

    @cached_property
    def instances(self) -> Instances:
        return cast(Instances, _Closed("machines"))

    @cached_property
    def keys(self) -> Keys:
        return cast(Keys, _Closed("keys"))

    @cached_property
    def checks(self) -> Checks:
        return cast(Checks, _Closed("checks"))

    @cached_property
    def monitoring(self) -> Monitoring:
        return cast(Monitoring, _Closed("machines"))

    def now(self) -> float:
        return self._all.now()

    def close(self) -> None:
        """The station that it limits stays open: it is shared by all callers."""


class _Closed:
    """A noun that is for administrators only."""

    def __init__(self, noun: str) -> None:
        self._noun = noun

    def __getattr__(self, name: str) -> Any:
        raise Forbidden(f"only administrators may see and change {self._noun}")


def station_of_caller(caller: Caller, station: Station, allowances: Allowances = NOTHING_MORE) -> Station:
    """What the caller may see of a station; all of it for an administrator."""
    if not caller.sees_all:
        return OwnedStation(caller, station, allowances)
    return station if caller.may(Right.MANAGE) else cast(Station, OverseeingStation(caller, station))
