"""The checks of `doctor`: one file per subject, here their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from stationmaster.station.checks import CheckResult, WorkerService
from stationmaster.station.local.checks.accounts import account_results
from stationmaster.station.local.checks.bucket import bucket_results
from stationmaster.station.local.checks.channels import channel_results
from stationmaster.station.local.checks.computer import (
    demo_result,
    disk_result,
    gpu_results,
    program_results,
    tool_results,
)
from stationmaster.station.local.checks.home import home_result, settings_results
from stationmaster.station.local.checks.shipped_parts import page_result, trackside_result
from stationmaster.station.local.checks.ssh_key import key_result
from stationmaster.station.local.checks.store import store_results
from stationmaster.station.local.checks.workers import worker_results
from stationmaster.station.local.installation import Installation
from stationmaster.station.local.worker_service import set_up_service


class LocalChecks:
    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._settings = installation.settings

    def results(self, *, offline: bool = False) -> Sequence[CheckResult]:
        return list(self._results(offline=offline))

    def worker_service(self) -> WorkerService:
        return set_up_service(self._settings, self._installation.environ, folder=Path.cwd())

    def _results(self, *, offline: bool) -> Iterator[CheckResult]:
        installation, settings = self._installation, self._settings
        yield from program_results()
        yield from settings_results(installation)
        yield home_result(settings)
        stored = store_results(installation)
        yield from stored
        has_store = all(result.ok for result in stored)
        if has_store:
            yield from worker_results(installation.store, settings)
        yield from account_results(installation, has_store=has_store, offline=offline)
        yield key_result(settings)
        if has_store:
            yield from channel_results(settings, installation.store, offline=offline)
        yield from bucket_results(settings, offline=offline)
        yield disk_result(settings)
        yield from gpu_results(installation.local_gpus(), is_default=settings.provider == "loopback")
        yield from tool_results(settings)
        yield trackside_result()
        yield page_result()
        yield demo_result()
