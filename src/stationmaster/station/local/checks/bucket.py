"""Check of the bucket."""

from __future__ import annotations

from collections.abc import Iterator

from stationmaster.delivery.bucket import open_bucket
from stationmaster.errors import StationmasterError
from stationmaster.settings import Settings
from stationmaster.station.checks import CheckResult, failed, passed


def bucket_results(settings: Settings, *, offline: bool) -> Iterator[CheckResult]:
    """Whether the bucket is writable; nothing if none is set."""
    if offline and settings.bucket.name is not None:
        yield passed("bucket", f"{settings.bucket.name} is set, not checked (--offline)")
    if offline:
        return
    try:
        bucket = open_bucket(settings.bucket)
        if bucket is None:
            return
        try:
            checked = "checks checksums" if bucket.verifies_checksums else "does not check them: files are read back"
        finally:
            bucket.close()
    except StationmasterError as problem:
        yield failed("bucket", str(problem), problem.hint or "")
        return
    yield passed("bucket", f"{bucket.location()} is writable and {checked}")
