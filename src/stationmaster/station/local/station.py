"""The local station: each noun is imported when it is first used.

Recipes, providers and destinations take longer to import than `stationmaster jobs` takes to run. All these late imports
are here, one per noun.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from stationmaster.config import load_settings
from stationmaster.settings import Settings
from stationmaster.station.local.installation import Installation

if TYPE_CHECKING:
    from stationmaster.providers.base import Pause
    from stationmaster.station.local.analyses import LocalAnalyses
    from stationmaster.station.local.artifacts import LocalArtifacts
    from stationmaster.station.local.audit import LocalAudit
    from stationmaster.station.local.checks import LocalChecks
    from stationmaster.station.local.costs import LocalCosts
    from stationmaster.station.local.credits import LocalCredits
    from stationmaster.station.local.dataset_uploads import LocalDatasetUploads
    from stationmaster.station.local.datasets import LocalDatasets
    from stationmaster.station.local.history import LocalEvents, LocalLogs, LocalReadings
    from stationmaster.station.local.instances import LocalInstances
    from stationmaster.station.local.jobs import LocalJobs
    from stationmaster.station.local.keys import LocalKeys
    from stationmaster.station.local.metrics import LocalMetrics
    from stationmaster.station.local.models import LocalModels
    from stationmaster.station.local.monitoring import LocalMonitoring
    from stationmaster.station.local.notifications import LocalNotifications
    from stationmaster.station.local.offers import LocalOffers
    from stationmaster.station.local.overview import LocalOverviews
    from stationmaster.station.local.processes import LocalProcesses
    from stationmaster.station.local.proposals import LocalProposals
    from stationmaster.station.local.recipes import LocalRecipes
    from stationmaster.station.local.store_upkeep import StoreUpkeep
    from stationmaster.station.local.tokens import LocalTokens
    from stationmaster.station.local.users import LocalUsers
    from stationmaster.store.store import Store


class LocalStation:
    def __init__(self, settings: Settings, environ: Mapping[str, str], *, pause: Pause = asyncio.sleep) -> None:
        """`pause` waits for a provider's rate limit; the CLI makes it visible."""
        self.installation = Installation(settings, environ, pause=pause)

    def with_settings(self, settings: Settings) -> LocalStation:
        """The same station with other settings. Both have one store, which this one closes."""
        other = LocalStation(settings, self.installation.environ, pause=self.installation.pause)
        other.installation = self.installation.with_settings(settings)
        return other

    @property
    def settings(self) -> Settings:
        return self.installation.settings

    @property
    def log_level(self) -> str:
        return self.installation.settings.log_level

    @property
    def store(self) -> Store:
        return self.installation.store

    @cached_property
    def proposals(self) -> LocalProposals:
        from stationmaster.station.local.proposals import LocalProposals

        return LocalProposals(self.installation, report_of=lambda job_id: self.analyses.of_job(job_id).report)

    @cached_property
    def jobs(self) -> LocalJobs:
        from stationmaster.station.local.jobs import LocalJobs

        return LocalJobs(self.installation)

    @cached_property
    def overview(self) -> LocalOverviews:
        from stationmaster.station.local.overview import LocalOverviews

        return LocalOverviews(self.installation)

    @cached_property
    def events(self) -> LocalEvents:
        from stationmaster.station.local.history import LocalEvents

        return LocalEvents(self.installation)

    @cached_property
    def logs(self) -> LocalLogs:
        from stationmaster.station.local.history import LocalLogs

        return LocalLogs(self.installation)

    @cached_property
    def readings(self) -> LocalReadings:
        from stationmaster.station.local.history import LocalReadings

        return LocalReadings(self.installation)

    @cached_property
    def metrics(self) -> LocalMetrics:
        from stationmaster.station.local.metrics import LocalMetrics

        return LocalMetrics(self.installation)

    @cached_property
    def analyses(self) -> LocalAnalyses:
        from stationmaster.station.local.analyses import LocalAnalyses

        return LocalAnalyses(self.installation)

    @cached_property
    def artifacts(self) -> LocalArtifacts:
        from stationmaster.station.local.artifacts import LocalArtifacts

        return LocalArtifacts(self.installation)

    @cached_property
    def costs(self) -> LocalCosts:
        from stationmaster.station.local.costs import LocalCosts

        return LocalCosts(self.installation)

    @cached_property
    def models(self) -> LocalModels:
        from stationmaster.station.local.models import LocalModels

        return LocalModels(self.installation)

    @cached_property
    def users(self) -> LocalUsers:
        from stationmaster.station.local.users import LocalUsers

        return LocalUsers(self.installation)

    @cached_property
    def tokens(self) -> LocalTokens:
        from stationmaster.station.local.tokens import LocalTokens

        return LocalTokens(self.installation)

    @cached_property
    def audit(self) -> LocalAudit:
        from stationmaster.station.local.audit import LocalAudit

        return LocalAudit(self.installation)

    @cached_property
    def credits(self) -> LocalCredits:
        from stationmaster.station.local.credits import LocalCredits

        return LocalCredits(self.installation)

    @cached_property
    def notifications(self) -> LocalNotifications:
        from stationmaster.station.local.notifications import LocalNotifications

        return LocalNotifications(self.installation)

    @cached_property
    def offers(self) -> LocalOffers:
        from stationmaster.station.local.offers import LocalOffers

        return LocalOffers(self.installation)

    @cached_property
    def recipes(self) -> LocalRecipes:
        from stationmaster.station.local.recipes import LocalRecipes

        return LocalRecipes(self.installation)

    @cached_property
    def datasets(self) -> LocalDatasets:
        from stationmaster.station.local.datasets import LocalDatasets

        return LocalDatasets(self.installation)

    @cached_property
    def dataset_uploads(self) -> LocalDatasetUploads:
        from stationmaster.station.local.dataset_uploads import LocalDatasetUploads

        return LocalDatasetUploads(self.installation)

    @cached_property
    def instances(self) -> LocalInstances:
        from stationmaster.station.local.instances import LocalInstances

        return LocalInstances(self.installation)

    @cached_property
    def keys(self) -> LocalKeys:
        from stationmaster.station.local.keys import LocalKeys

        return LocalKeys(self.installation)

    @cached_property
    def checks(self) -> LocalChecks:
        from stationmaster.station.local.checks import LocalChecks

        return LocalChecks(self.installation)

    @cached_property
    def monitoring(self) -> LocalMonitoring:
        from stationmaster.station.local.monitoring import LocalMonitoring

        return LocalMonitoring(self.installation)

    @cached_property
    def processes(self) -> LocalProcesses:
        """What only this computer can do; not part of the Station protocol."""
        from stationmaster.station.local.processes import LocalProcesses

        return LocalProcesses(self.installation)

    @cached_property
    def store_upkeep(self) -> StoreUpkeep:
        """What whoever keeps the database does on its computer; not part of the Station protocol."""
        from stationmaster.station.local.store_upkeep import StoreUpkeep

        return StoreUpkeep(self.settings)

    def now(self) -> float:
        return self.store.now()

    def close(self) -> None:
        self.installation.close()


def open_station(
    environ: Mapping[str, str],
    *,
    home: Path | None = None,
    log_level: str | None = None,
    pause: Pause = asyncio.sleep,
) -> LocalStation:
    """The station of this computer, set up by its environment, its files and a command's options.

    Raises ConfigInvalid. The store is opened by the first call that needs it.
    """
    settings = load_settings(environ, overrides={"home": home, "log_level": log_level})
    return LocalStation(settings, environ, pause=pause)
