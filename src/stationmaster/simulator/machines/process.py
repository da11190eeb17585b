"""The back end `process`: a machine is a folder and its processes. Works without root and system packages."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from stationmaster.simulator.instances import Address
from stationmaster.simulator.json_rows import MachineTelemetry
from stationmaster.simulator.listening import stop_listening
from stationmaster.simulator.machines.base import MachineSpec
from stationmaster.simulator.machines.marked_processes import MARK, MarkedProcesses, end_marked
from stationmaster.simulator.machines.nvidia_smi import read_gpus
from stationmaster.simulator.machines.port_forward import ForwardState, PortForward
from stationmaster.simulator.machines.ssh_server import USER, MachineShell, listen, new_host_key
from stationmaster.simulator.machines.stubs import gpu_config, write_nvidia_smi, write_wrong_clock

_HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class _MachinePaths:
    """The paths of a machine whose root is a folder; its programs get them as `variables`."""

    root: Path
    home: Path
    temporary: Path
    workspace: Path
    job_root: Path
    host_keys: Path
    container_log: Path
    uptime: Path
    programs: Path

    def variables(self) -> dict[str, str]:
        """Variables that onstart, the guard and trackside read; each has the real path as its default."""
        return {
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "WORKSPACE": str(self.workspace),
            "STATIONMASTER_JOB_ROOT": str(self.job_root),  # else /opt/stationmaster/jobs
            "STATIONMASTER_WORKSPACE": str(self.workspace),  # else /workspace
            "STATIONMASTER_HOST_KEYS": str(self.host_keys),  # the folder of ssh_host_*_key.pub, else /etc/ssh
            "STATIONMASTER_CONTAINER_LOG": str(self.container_log),  # else /proc/1/fd/1
            "STATIONMASTER_UPTIME": str(self.uptime),  # else /proc/uptime
        }

    def make(self) -> None:
        folders = (self.home, self.temporary, self.workspace, self.job_root, self.host_keys, self.programs)
        for folder in (*folders, self.home / ".ssh", self.container_log.parent, self.uptime.parent):
            folder.mkdir(parents=True, exist_ok=True)
        if not self.uptime.is_symlink() and not self.uptime.exists():
            self.uptime.symlink_to("/proc/uptime")  # a test may put a file in its place, and so let hours pass


def _paths_under(root: Path) -> _MachinePaths:
    return _MachinePaths(
        root=root,
        home=root / "root",
        temporary=root / "tmp",
        workspace=root / "workspace",
        job_root=root / "opt/stationmaster/jobs",
        host_keys=root / "etc/ssh",
        container_log=root / "var/log/container.log",
        uptime=root / "proc/uptime",
        programs=root / "usr/local/bin",
    )


class ProcessMachines:
    """Every machine has its own root folder, host key, SSH server and ports; its processes have its marker."""

    api_hosts: tuple[str, ...] = ()

    def __init__(self, folder: Path, *, path: str) -> None:
        self._folder = folder
        self._path = path
        self._api_url = ""
        self._machines: dict[int, _ProcessMachine] = {}

    async def open(self, *, api_port: int, fresh: bool) -> None:
        self._api_url = f"http://{_HOST}:{api_port}"
        for leftover in self._folder.glob("*/marker") if fresh else ():
            await end_marked(leftover.read_text())
            await asyncio.to_thread(shutil.rmtree, leftover.parent)

    async def close(self, *, keep: bool) -> None:
        for machine_id, machine in list(self._machines.items()):
            if keep:
                await machine.shut()
            else:
                await self.destroy(machine_id)

    async def boot(self, spec: MachineSpec) -> Address:
        machine = self._machine(spec)
        address = await machine.open()
        await machine.run_onstart()
        return address

    async def adopt(self, spec: MachineSpec) -> Address | None:
        machine = self._machine(spec)
        return await machine.open() if machine.paths.root.is_dir() else None

    async def halt(self, machine_id: int) -> None:
        if machine := self._machines.get(machine_id):
            await machine.halt()

    async def destroy(self, machine_id: int) -> None:
        machine = self._machines.pop(machine_id, None)
        if machine is not None:
            await machine.halt()
        await asyncio.to_thread(shutil.rmtree, self._folder / str(machine_id), ignore_errors=True)

    async def authorize(self, machine_id: int, ssh_keys: tuple[str, ...]) -> None:
        self._machines[machine_id].authorize(ssh_keys)

    async def log(self, machine_id: int) -> str:
        machine = self._machines.get(machine_id)
        if machine is None or not machine.paths.container_log.exists():
            return ""
        return machine.paths.container_log.read_text(encoding="utf-8", errors="replace")

    async def telemetry(self, machine_id: int) -> MachineTelemetry:
        machine = self._machines.get(machine_id)
        return await asyncio.to_thread(machine.telemetry) if machine is not None else MachineTelemetry()

    async def take_traffic(self, machine_id: int) -> tuple[int, int]:
        machine = self._machines.get(machine_id)
        return machine.take_traffic() if machine is not None else (0, 0)

    async def processes(self, machine_id: int) -> list[int]:
        machine = self._machines.get(machine_id)
        return await machine.processes.find() if machine is not None else []

    async def refuse_ssh(self, machine_id: int, *, door: str, refuse: bool) -> None:
        if machine := self._machines.get(machine_id):
            await machine.set_ports(ForwardState.REFUSING if refuse else ForwardState.OPEN, which=door)

    async def partition(self, machine_id: int, *, cut: bool) -> None:
        """Cuts SSH only: the API stays reachable on this computer's loopback."""
        if machine := self._machines.get(machine_id):
            await machine.set_ports(ForwardState.SILENT if cut else ForwardState.OPEN)

    async def swap_host_key(self, machine_id: int) -> None:
        if machine := self._machines.get(machine_id):
            await machine.swap_host_key()

    async def fill_disk(self, machine_id: int) -> None:
        if machine := self._machines.get(machine_id):
            await machine.fill_disk()

    async def skew_clock(self, machine_id: int, seconds: float) -> None:
        if machine := self._machines.get(machine_id):
            machine.skew_clock(seconds)

    def _machine(self, spec: MachineSpec) -> _ProcessMachine:
        known = self._machines.get(spec.id)
        if known is None:
            known = _ProcessMachine(spec, self._folder / str(spec.id), path=self._path, api_url=self._api_url)
            self._machines[spec.id] = known
        known.spec = spec
        return known


class _ProcessMachine:
    def __init__(self, spec: MachineSpec, folder: Path, *, path: str, api_url: str) -> None:
        self.spec = spec
        self.paths = _paths_under(folder / "root")
        self.processes = MarkedProcesses(spec.marker)
        self._folder = folder
        self._path = path
        self._api_url = api_url
        self._acceptor: asyncssh.SSHAcceptor | None = None  # None: halted, its ports stay closed
        self._listening = asyncio.Lock()  # a fault may open ports while the machine is being halted
        self._direct = PortForward(_HOST)
        self._proxy = PortForward(_HOST)
        self._traffic = (0, 0)
        self._full = False
        self._skewed = False

    async def open(self) -> Address:
        """Write the files and start SSH on both ports, the previous ones if they are free."""
        self.paths.make()
        (self._folder / "marker").write_text(self.spec.marker)
        host_key = self.paths.host_keys / "ssh_host_ed25519_key"
        if not host_key.exists():
            new_host_key(host_key)
        self.paths.container_log.touch()
        # A login shell resets PATH from /etc/profile; this adds the machine's programs again.
        (self.paths.home / ".profile").write_text(f'export PATH="{self.paths.programs}:$PATH"\n')
        self.authorize(self.spec.ssh_keys)
        write_nvidia_smi(self.paths.programs, gpu_config(self.spec, marker=self.spec.marker), python=sys.executable)
        await self._start_ssh(host_key)
        known = self.spec.address
        return Address(
            direct_host=_HOST,
            direct_port=await self._direct.open(known.direct_port if known else 0),
            proxy_host=_HOST,
            proxy_port=await self._proxy.open(known.proxy_port if known else 0),
        )

    async def run_onstart(self) -> None:
        script = self.paths.home / "onstart.sh"
        script.write_text(self.spec.onstart or "")
        with self.paths.container_log.open("ab") as container_log:
            await self.processes.start(
                *self._wrapped(["/bin/bash", str(script)]),
                stdin=subprocess.DEVNULL,
                stdout=container_log,
                stderr=container_log,
                cwd=self.paths.home,
                env=self._variables() | self._container_variables() | dict(self.spec.environment),
                start_new_session=True,
            )

    async def shut(self) -> None:
        """Stop SSH."""
        async with self._listening:
            await self._direct.close()
            await self._proxy.close()
            if self._acceptor is not None:
                await stop_listening(self._acceptor)
                self._acceptor = None

    async def halt(self) -> None:
        await self.shut()
        await self.processes.end_all()

    def authorize(self, ssh_keys: tuple[str, ...]) -> None:
        """Service keys go into a file of their own, beside the one that the machine's owner may write."""
        (self._folder / "service_keys").write_text("".join(f"{key}\n" for key in ssh_keys))

    async def set_ports(self, state: ForwardState, *, which: str = "both") -> None:
        async with self._listening:
            if self._acceptor is None:
                return
            if which in ("direct", "both"):
                await self._direct.set(state)
            if which in ("proxy", "both"):
                await self._proxy.set(state)

    async def swap_host_key(self) -> None:
        async with self._listening:
            if self._acceptor is None:
                return
            other = self._folder / "other_host_key"
            new_host_key(other)
            for door in (self._direct, self._proxy):
                await door.set(ForwardState.REFUSING)
            await stop_listening(self._acceptor)
            await self._start_ssh(other)
            for door in (self._direct, self._proxy):
                await door.set(ForwardState.OPEN)

    async def fill_disk(self) -> None:
        self._full = True
        for pid in await self.processes.find():
            _forbid_files(pid)

    def skew_clock(self, seconds: float) -> None:
        write_wrong_clock(self._folder / "clock", self.paths.programs, seconds)
        self._skewed = True

    def take_traffic(self) -> tuple[int, int]:
        doors = (self._direct, self._proxy)
        inward, outward = sum(door.inward_bytes for door in doors), sum(door.outward_bytes for door in doors)
        before, self._traffic = self._traffic, (inward, outward)
        return inward - before[0], outward - before[1]

    def telemetry(self) -> MachineTelemetry:
        gpus = read_gpus(gpu_config(self.spec, marker=self.spec.marker), self._folder / "service.last")
        return MachineTelemetry(
            gpu_percent=float(sum(gpu["utilization.gpu"] for gpu in gpus)) / len(gpus),
            gpu_celsius=float(gpus[0]["temperature.gpu"]),
            gpu_memory_gb=sum(gpu["memory.used"] for gpu in gpus) / 1000,
            memory_gb=0.5,
            disk_used_gb=_used_bytes(self.paths.root) / 1e9,
        )

    async def _start_ssh(self, host_key: Path) -> None:
        shell = MachineShell(
            home=self.paths.home,
            authorized_keys=(self._folder / "service_keys", self.paths.home / ".ssh/authorized_keys"),
            variables=self._variables,
            is_full=lambda: self._full,
            wrapped=self._wrapped,
            start=self.processes.start,
        )
        self._acceptor = await listen(shell, host_key)
        for door in (self._direct, self._proxy):
            door.target = (_HOST, self._acceptor.get_port())

    def _wrapped(self, command: list[str]) -> list[str]:
        """The command line; on a full disk with a limit that prevents writing files."""
        return ["/bin/sh", "-c", 'ulimit -S -f 0; exec "$@"', "sh", *command] if self._full else command

    def _variables(self) -> dict[str, str]:
        variables = {
            "PATH": f"{self.paths.programs}:{self._path}",
            "LANG": "C.UTF-8",
            "USER": USER,
            "LOGNAME": USER,
            "SHELL": "/bin/bash",
            MARK: self.spec.marker,
            "STATIONMASTER_PROVIDER_URL": self._api_url,
        }
        if self._skewed:
            variables["PYTHONPATH"] = str(self._folder / "clock")
        return variables | self.paths.variables()

    def _container_variables(self) -> dict[str, str]:
        """Variables that the service sets in the container; SSH sessions do not get them."""
        return {
            "CONTAINER_ID": str(self.spec.id),
            "CONTAINER_API_KEY": self.spec.api_key,
            "VAST_CONTAINERLABEL": f"C.{self.spec.id}",
            "VAST_TCP_PORT_22": str(self._direct.port),
        }


def _forbid_files(pid: int) -> None:
    if hasattr(resource, "prlimit"):
        try:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        except (ProcessLookupError, PermissionError):
            pass  # already ended


def _used_bytes(root: Path) -> int:
    used = 0
    for folder, folders, files in os.walk(root):  # passes over folders that were removed meanwhile
        for name in (*folders, *files):
            with suppress(OSError):  # the same for files
                used += Path(folder, name).lstat().st_blocks * 512
    return used
