"""The station behind a server's address; each noun is imported when it is first used, as in the local one."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from stationmaster.errors import UserError
from stationmaster.station.http.connection import Connection
from stationmaster.station.wire.server import ServerDocument

if TYPE_CHECKING:
    import httpx

    from stationmaster.station.analysis import Analyses
    from stationmaster.station.artifacts import Artifacts
    from stationmaster.station.http.audit import HttpAudit
    from stationmaster.station.http.checks import HttpChecks
    from stationmaster.station.http.costs import HttpCosts
    from stationmaster.station.http.credits import HttpCredits
    from stationmaster.station.http.dataset_uploads import HttpDatasetUploads
    from stationmaster.station.http.datasets import HttpDatasets
    from stationmaster.station.http.history import HttpEvents, HttpLogs, HttpReadings
    from stationmaster.station.http.instances import HttpInstances
    from stationmaster.station.http.jobs import HttpJobs
    from stationmaster.station.http.notifications import HttpNotifications
    from stationmaster.station.http.offers import HttpOffers
    from stationmaster.station.http.overview import HttpOverviews
    from stationmaster.station.http.proposals import HttpProposals
    from stationmaster.station.http.recipes import HttpRecipes
    from stationmaster.station.http.tokens import HttpTokens
    from stationmaster.station.http.users import HttpUsers
    from stationmaster.station.keys import Keys
    from stationmaster.station.metrics import Metrics
    from stationmaster.station.models import Models
    from stationmaster.station.monitoring import Monitoring


class HttpStation:
    """The same interfaces as the local station. What only makes sense on the server's computer raises UserError."""

    def __init__(self, url: str, token: str | None, *, transport: httpx.BaseTransport | None = None) -> None:
        """`transport` sends the requests; by default httpx's own."""
        self.connection = Connection(url, token, transport=transport)

    @cached_property
    def proposals(self) -> HttpProposals:
        from stationmaster.station.http.proposals import HttpProposals

        return HttpProposals(self.connection)

    @cached_property
    def jobs(self) -> HttpJobs:
        from stationmaster.station.http.jobs import HttpJobs

        return HttpJobs(self.connection)

    @cached_property
    def overview(self) -> HttpOverviews:
        from stationmaster.station.http.overview import HttpOverviews

        return HttpOverviews(self.connection)

    @cached_property
    def events(self) -> HttpEvents:
        from stationmaster.station.http.history import HttpEvents

        return HttpEvents(self.connection)

    @cached_property
    def logs(self) -> HttpLogs:
        from stationmaster.station.http.history import HttpLogs

        return HttpLogs(self.connection)

    @cached_property
    def readings(self) -> HttpReadings:
        from stationmaster.station.http.history import HttpReadings

        return HttpReadings(self.connection)

    @cached_property
    def metrics(self) -> Metrics:
        from stationmaster.station.http.metrics import HttpMetrics

        return HttpMetrics(self.connection)

    @cached_property
    def analyses(self) -> Analyses:
        from stationmaster.station.http.analyses import HttpAnalyses

        return HttpAnalyses(self.connection)

    @cached_property
    def artifacts(self) -> Artifacts:
        from stationmaster.station.http.artifacts import HttpArtifacts

        return HttpArtifacts(self.connection)

    @cached_property
    def costs(self) -> HttpCosts:
        from stationmaster.station.http.costs import HttpCosts

        return HttpCosts(self.connection)

    @cached_property
    def models(self) -> Models:
        from stationmaster.station.http.models import HttpModels

        return HttpModels(self.connection)

    @cached_property
    def users(self) -> HttpUsers:
        from stationmaster.station.http.users import HttpUsers

        return HttpUsers(self.connection)

    @cached_property
    def tokens(self) -> HttpTokens:
        from stationmaster.station.http.tokens import HttpTokens

        return HttpTokens(self.connection)

    @cached_property
    def audit(self) -> HttpAudit:
        from stationmaster.station.http.audit import HttpAudit

        return HttpAudit(self.connection)

    @cached_property
    def credits(self) -> HttpCredits:
        from stationmaster.station.http.credits import HttpCredits

        return HttpCredits(self.connection)

    @cached_property
    def notifications(self) -> HttpNotifications:
        from stationmaster.station.http.notifications import HttpNotifications

        return HttpNotifications(self.connection)

    @cached_property
    def offers(self) -> HttpOffers:
        from stationmaster.station.http.offers import HttpOffers

        return HttpOffers(self.connection)

    @cached_property
    def recipes(self) -> HttpRecipes:
        from stationmaster.station.http.recipes import HttpRecipes

        return HttpRecipes(self.connection)

    @cached_property
    def datasets(self) -> HttpDatasets:
        from stationmaster.station.http.datasets import HttpDatasets

        return HttpDatasets(self.connection)

    @cached_property
    def dataset_uploads(self) -> HttpDatasetUploads:
        from stationmaster.station.http.dataset_uploads import HttpDatasetUploads

        return HttpDatasetUploads(self.connection)

    @cached_property
    def instances(self) -> HttpInstances:
        from stationmaster.station.http.instances import HttpInstances

        return HttpInstances(self.connection)

    @cached_property
    def keys(self) -> Keys:
        hint = "run `stationmaster keys` on the server itself: a private key stays where it is"
        return cast("Keys", _OnlyThere("SSH keys", hint))

    @cached_property
    def checks(self) -> HttpChecks:
        from stationmaster.station.http.checks import HttpChecks

        return HttpChecks(self.connection)

    @cached_property
    def monitoring(self) -> Monitoring:
        hint = "run `stationmaster monitor` on the server itself; `stationmaster instances` lists its machines"
        return cast("Monitoring", _OnlyThere("monitoring", hint))

    def now(self) -> float:
        return self.connection.get("/api/server", ServerDocument).now

    def close(self) -> None:
        self.connection.close()


class _OnlyThere:
    """A noun that is not served over HTTP."""

    def __init__(self, noun: str, hint: str = "run this command on the server itself") -> None:
        self._noun = noun
        self._hint = hint

    def __getattr__(self, name: str) -> Any:
        raise UserError(f"{self._noun} of a server cannot be reached with --server", hint=self._hint)
