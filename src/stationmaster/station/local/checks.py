"""The checks of `doctor`: this computer, its store and worker, and the bucket."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from stationmaster import __version__
from stationmaster.control.wiring.required_settings import require_set_up
from stationmaster.control.worker.background import running_worker
from stationmaster.delivery.bucket import open_bucket
from stationmaster.errors import ConfigInvalid, StationmasterError
from stationmaster.model import FoundGpus, GpuMaker
from stationmaster.money import format_dollars
from stationmaster.settings import Settings
from stationmaster.settings.private_home import is_shared_folder, open_to_others, tighten_home
from stationmaster.station.checks import CheckResult, WorkerService
from stationmaster.station.local.installation import Installation
from stationmaster.station.local.trusting import files_in_use
from stationmaster.station.local.worker_service import set_up_service
from stationmaster.store.store import Store


class LocalChecks:
    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._settings = installation.settings

    def results(self) -> Sequence[CheckResult]:
        return list(self._results())

    def worker_service(self) -> WorkerService:
        return set_up_service(self._settings, self._installation.environ, folder=Path.cwd())

    def _results(self) -> Iterator[CheckResult]:
        settings = self._settings
        yield CheckResult("version", True, f"stationmaster {__version__}, Python {sys.version.split()[0]}")
        yield CheckResult("settings", True, f"home {settings.home}, provider {settings.provider}")
        for file in files_in_use(self._installation.environ, settings.home, Path.cwd()):
            yield CheckResult("settings", True, f"read from {file}")
        yield _home(settings)
        yield from _provider_results(settings)
        yield from self._store_results()
        yield _disk(settings)
        yield from _gpu_results(self._installation.local_gpus())
        yield from _bucket_results(settings)
        yield from _tool_results()
        yield _demo()

    def _store_results(self) -> Iterator[CheckResult]:
        try:
            store = self._installation.store
        except StationmasterError as problem:
            yield CheckResult("store", False, str(problem), problem.hint or "")
            return
        kind = "SQLite" if self._settings.uses_sqlite else "PostgreSQL"
        yield CheckResult("store", True, f"{kind}, installation {store.installation_id}")
        yield _worker(store, self._settings)
        for alert in store.alerts.open():
            yield CheckResult("alert", False, f"{alert.job_id or ''} {alert.message}".strip())


def _home(settings: Settings) -> CheckResult:
    """Whether others may read the home; what is this user's own is tightened first, as at the start of any command."""
    home = settings.home
    was = len(open_to_others(home)) if home.is_dir() else 0
    tighten_home(home)
    if left := open_to_others(home) if home.is_dir() else []:
        names = ", ".join("the home" if path == home else path.name for path in left)
        hint = "choose a folder of your own: --home" if is_shared_folder(home) else f'chown -R "$USER" {home}'
        return CheckResult("home", False, f"other users have rights to {names}", hint)
    return CheckResult("home", True, "private now; other users had rights to it before" if was else "private")


def _provider_results(settings: Settings) -> Iterator[CheckResult]:
    """Whether the default provider has what it needs, and what may be rented there; nothing for this computer."""
    name = settings.provider
    try:
        require_set_up(name, settings)
    except ConfigInvalid as problem:
        yield CheckResult("provider", False, f"{name}: {problem}", problem.hint or "")
        return
    if name.partition(":")[0] == "vastai":
        gpus, cap = ", ".join(settings.vastai.preferred_gpus), format_dollars(settings.vastai.max_bid_per_hour)
        yield CheckResult("provider", True, f"{name}: key set, GPUs {gpus} preferred, at most {cap} per hour")
    elif name == "ssh":
        yield CheckResult("provider", True, f"ssh: {', '.join(host.name for host in settings.ssh.hosts)}")


def _worker(store: Store, settings: Settings) -> CheckResult:
    waiting = store.jobs.count_needing_a_worker()
    worker = running_worker(settings.home)
    if worker is not None:
        return CheckResult("worker", True, f"running (pid {worker.pid}, version {worker.version}, log {worker.log})")
    if waiting:
        hint = "any command starts one; `stationmaster doctor --service` prints a systemd unit that keeps it running"
        return CheckResult("worker", False, f"not running, but {waiting} job(s) or machine(s) need one", hint)
    return CheckResult("worker", True, "not running, not needed")


def _disk(settings: Settings) -> CheckResult:
    free = shutil.disk_usage(settings.home).free / 1024**3
    return CheckResult("disk", free > 1, f"{free:.1f} GiB free", "" if free > 1 else "free some disk space for models")


def _gpu_results(found: FoundGpus) -> Iterator[CheckResult]:
    """The GPUs of this computer that jobs can use with provider loopback."""
    for gpu in found.gpus:
        cuda = f", CUDA {gpu.cuda:g}" if gpu.cuda is not None else ""
        tried = "" if gpu.maker is GpuMaker.NVIDIA else f"; not confirmed on {gpu.maker}'s GPUs"
        detail = f"{gpu.number}: {gpu}{cuda}, {gpu.id}"
        unusable = f"; jobs cannot use it: {gpu.unusable}" if gpu.unusable else ""
        yield CheckResult("gpu", True, f"{detail}{tried}{unusable}")
    for problem in found.problems:
        yield CheckResult("gpu", False, problem, "repair the driver, or remove the tool if there is no such GPU")
    if found.kept_back:
        yield CheckResult("gpu", True, f"{found.kept_back} more, kept from jobs (loopback.gpus, CUDA_VISIBLE_DEVICES)")
    elif not found.gpus and not found.problems:
        yield CheckResult("gpu", True, "none found on this computer; trainings that need one are run elsewhere")


def _bucket_results(settings: Settings) -> Iterator[CheckResult]:
    """Whether the bucket is writable; nothing if none is set."""
    try:
        bucket = open_bucket(settings.bucket)
        if bucket is None:
            return
        try:
            checked = "checks checksums" if bucket.verifies_checksums else "does not check them: files are read back"
        finally:
            bucket.close()
    except StationmasterError as problem:
        yield CheckResult("bucket", False, str(problem), problem.hint or "")
        return
    yield CheckResult("bucket", True, f"{bucket.location()} is writable and {checked}")


def _tool_results() -> Iterator[CheckResult]:
    for tool, purpose in (("ssh", "a shell on rented machines"), ("rsync", "faster transfers")):
        found = shutil.which(tool)
        yield CheckResult(tool, True, found or f"not found; only needed for {purpose}")


def _demo() -> CheckResult:
    there = find_spec("numpy") is not None
    hint = "" if there else "pip install 'stationmaster[demo]'"
    return CheckResult(
        "demo", True, "NumPy is installed" if there else "NumPy is not installed: the demo cannot run", hint
    )
