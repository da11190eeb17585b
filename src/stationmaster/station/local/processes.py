"""Processes of this computer: the background worker, the simulator, a shell on a job's machine.

They are not part of the Station protocol: a station behind HTTP has its processes elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stationmaster.control.wiring.simulator_address import (
    remove_simulator_address,
    simulator_address,
    simulator_home,
    write_simulator_address,
)
from stationmaster.control.worker.abilities import abilities_of, differing, digests_of, lacking, of_money
from stationmaster.control.worker.background import Running, ensure_worker, running_worker, worker_after_reread
from stationmaster.control.worker.settings_source import files_changed_at
from stationmaster.errors import IllegalMove, UserError
from stationmaster.model import LocalAccess, SshAccess
from stationmaster.remote.shell import shell_command, shell_folder
from stationmaster.settings.private_home import make_private_home
from stationmaster.station.local.installation import Installation
from stationmaster.station.local.jobs import LocalJobs


@dataclass(frozen=True, slots=True, kw_only=True)
class HelpingWorker:
    """A live worker of this home, and how it differs from this command."""

    pid: int
    log: Path
    is_new: bool  # started by this call
    missing: tuple[str, ...] = ()  # abilities that this command's settings have and the worker lacks
    other_settings: tuple[str, ...] = ()  # names of settings that differ from this command's


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedWorker:
    """The worker before a job is submitted."""

    is_new: bool  # replaced another one
    other_settings: tuple[str, ...] = ()  # of the one that was replaced


@dataclass(frozen=True, slots=True, kw_only=True)
class WokenWorker:
    pid: int
    log: Path
    waiting: int  # jobs, machines and messages that had no worker


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """A command line that opens a shell on a machine."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)  # added to the person's own
    folder: Path | None = None  # its working folder, for a machine on this computer
    warning: str | None = None  # to print before the shell opens


class LocalProcesses:
    """The parameter `command` is the command line that runs Stationmaster again with the same options."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._settings = installation.settings
        self.home = installation.settings.home

    def wake_worker(self, command: Sequence[str]) -> WokenWorker | None:
        """Start a worker if work is waiting and none is alive. Raises StoreError if it does not start."""
        store = self._installation.store
        waiting = store.jobs.count_needing_a_worker() + store.outbox.count_pending()
        if not waiting or running_worker(self.home) is not None or self.is_served_elsewhere():
            return None
        worker, _ = ensure_worker(self.home, command)
        return WokenWorker(pid=worker.pid, log=worker.log, waiting=waiting)

    def is_served_elsewhere(self) -> bool:
        """Whether live workers of a shared store, on any host, serve the providers of all jobs that have not ended."""
        store = self._installation.store
        if self._settings.uses_sqlite or not (alive := store.workers.alive()):
            return False
        return not store.jobs.of_other_providers({name for worker in alive for name in worker.providers})

    def prepare_worker(self, command: Sequence[str]) -> PreparedWorker:
        """Before a job is written: replace a live worker that has other settings than this command.

        One that cannot be replaced keeps running. Raises UserError if it would count the job's money by other rules.
        """
        ours = digests_of(self._settings)
        changed_at = files_changed_at(self._installation.environ, self.home)
        found = worker_after_reread(self.home, ours, changed_at=changed_at)
        if found is None:
            return PreparedWorker(is_new=False)
        worker, is_new = self._fitting_worker(command)
        others = [] if found.settings is None else differing(ours, found.settings)
        if not is_new and (money := of_money(others)):
            raise UserError(
                f"the worker (pid {worker.pid}) runs with other settings than this command: {', '.join(money)}",
                hint=f"write them into {self.home / 'config.toml'}, which it reloads, or restart it from here",
            )
        return PreparedWorker(is_new=is_new, other_settings=tuple(others) if is_new else ())

    def helping_worker(self, command: Sequence[str]) -> HelpingWorker:
        """A live worker that can do what this command's settings allow. One that runs in a terminal is not stopped; the
        result lists what it lacks. Raises StoreError if none starts.
        """
        worker, is_new = self._fitting_worker(command)
        if is_new:
            return HelpingWorker(pid=worker.pid, log=worker.log, is_new=True)
        missing = [] if worker.abilities is None else lacking(abilities_of(self._settings), worker.abilities)
        others = [] if worker.settings is None else differing(digests_of(self._settings), worker.settings)
        return HelpingWorker(
            pid=worker.pid, log=worker.log, is_new=False, missing=tuple(missing), other_settings=tuple(others)
        )

    @property
    def simulator_folder(self) -> Path:
        """The folder of this home's simulator and its machines."""
        return simulator_home(self.home)

    def has_simulator(self) -> bool:
        """Whether a simulator of this home is running."""
        return simulator_address(self.home) is not None

    def make_simulator_folder(self) -> Path:
        """Make that folder, in a private home. Raises OSError."""
        make_private_home(self.home)
        self.simulator_folder.mkdir(exist_ok=True, mode=0o700)
        return self.simulator_folder

    def announce_simulator(self, url: str, *, api_key: str, rate_limit_scale: float) -> None:
        write_simulator_address(self.home, url=url, api_key=api_key, rate_limit_scale=rate_limit_scale)

    def withdraw_simulator(self) -> None:
        remove_simulator_address(self.home)

    def shell(self, job: str) -> Shell:
        """A shell on the machine of a job. Raises NotFound, IllegalMove if it has no machine now, and HostKeyRefused if
        the machine's host keys should be known and are not.
        """
        jobs = LocalJobs(self._installation)
        found = jobs.find(job)
        access = jobs.view(found.id).access
        if access is None:
            raise IllegalMove(
                f"job {found.id} has no machine now: it is {found.state}", hint="check it with `stationmaster jobs`"
            )
        if isinstance(access, LocalAccess):
            return self._shell_here(access, found.id)
        return self._shell_there(access, found.id)

    def _shell_here(self, access: LocalAccess, job_id: str) -> Shell:
        folder = Path(access.job_root) / job_id
        environment = dict(access.environment)
        environment.pop("STATIONMASTER_MACHINE", None)  # a person's shell must not die with the machine
        return Shell(
            argv=(self._installation.environ.get("SHELL", "/bin/sh"),),
            environment=environment,
            folder=folder if folder.is_dir() else Path(access.root),
        )

    def _shell_there(self, access: SshAccess, job_id: str) -> Shell:
        folder = shell_folder(self.home, job_id)
        argv = shell_command(access, folder=folder, config_path=self._settings.ssh.config_path)
        warning = (
            f"the host key of {access.host} could not be verified: it may be another machine; type no secret there"
        )
        return Shell(argv=argv, warning=warning if access.unverified else None)

    def _fitting_worker(self, command: Sequence[str]) -> tuple[Running, bool]:
        return ensure_worker(
            self.home, command, abilities=abilities_of(self._settings), settings=digests_of(self._settings)
        )
