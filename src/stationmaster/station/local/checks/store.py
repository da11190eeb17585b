"""Checks of the store and of its schema."""

from __future__ import annotations

from stationmaster.errors import StationmasterError
from stationmaster.station.checks import CheckResult, failed, passed
from stationmaster.station.local.installation import Installation


def store_results(installation: Installation) -> list[CheckResult]:
    """Opens the store, which migrates an old one, as any command does."""
    from stationmaster.store.schema import HEAD, schema_version_of  # loads SQLAlchemy

    settings = installation.settings
    try:
        before = schema_version_of(settings.store_url)
        store = installation.store
    except StationmasterError as problem:
        hint = problem.hint or ""
        if "doctor" in hint:  # the usual advice for a store that does not answer
            hint = "check that the database is running and database_url is right" if not settings.uses_sqlite else ""
        return [failed("store", str(problem), hint)]
    kind = "SQLite" if settings.uses_sqlite else "PostgreSQL"
    migrated = f"; migrated from {before} just now" if before not in (None, HEAD) else ""
    return [
        passed("store", f"{kind}, installation {store.installation_id}"),
        passed("schema", f"{HEAD}, the newest{migrated}"),
    ]
