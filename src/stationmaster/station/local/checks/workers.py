"""Checks of what works for jobs: workers, sweeps, and the alerts that they raised."""

from __future__ import annotations

from collections.abc import Iterator

from stationmaster.control.periodic.sweep import SEPARATE_SWEEP, SWEEP
from stationmaster.control.worker.background import running_worker
from stationmaster.settings import Settings
from stationmaster.station.checks import CheckResult, failed, passed
from stationmaster.store.store import Store
from stationmaster.times import time_text

_SWEEPS_MISSED = 3
_FREE = ("loopback", "ssh")  # providers whose machines are not rented
_START_HINT = "any command starts one; `stationmaster doctor --service` prints a systemd unit that keeps it running"


def worker_results(store: Store, settings: Settings) -> Iterator[CheckResult]:
    yield _worker(store, settings)
    yield _sweep(store, settings)
    for alert in store.alerts.open():
        yield failed("alert", f"{alert.job_id or ''} {alert.message}".strip())


def _worker(store: Store, settings: Settings) -> CheckResult:
    worker = running_worker(settings.home)
    if worker is not None:
        return passed("worker", f"running (pid {worker.pid}, version {worker.version}, log {worker.log})")
    if not settings.uses_sqlite and (alive := store.workers.alive()):
        return passed("worker", f"running: {', '.join(f'{one.owner} ({one.version})' for one in alive)}")
    if waiting := store.jobs.count_needing_a_worker():
        return failed("worker", f"not running, but {waiting} job(s) or machine(s) need one", _START_HINT)
    return passed("worker", "not running, not needed")


def _sweep(store: Store, settings: Settings) -> CheckResult:
    """Whether machines that no job needs would be found: a worker sweeps, and so does `stationmaster sweeper`."""
    last, now = store.periodic.last_run_at(SWEEP, SEPARATE_SWEEP), store.now()
    when = "no sweep yet" if last is None else f"last sweep: {time_text(last, now=now)}"
    billing = [rental for rental in store.rentals.not_gone() if rental.provider not in _FREE]
    overdue_after = _SWEEPS_MISSED * max(settings.worker.sweep, settings.sweep.every)
    oldest = min((rental.requested_at for rental in billing), default=now)
    if billing and now - (oldest if last is None else last) > overdue_after:
        hint = "start a worker, or run `stationmaster sweeper`; `stationmaster sweep` looks once"
        return failed("sweep", f"{when}, and {len(billing)} machine(s) may bill", hint)
    return passed("sweep", when if billing else f"{when}; no rented machine")
