"""A machine in Linux namespaces: its own address, files and pid namespace, and a real sshd."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path

from stationmaster.simulator.instances import Address
from stationmaster.simulator.json_rows import MachineTelemetry
from stationmaster.simulator.machines.base import MachineSpec
from stationmaster.simulator.machines.marked_processes import MARK
from stationmaster.simulator.machines.namespace_disk import NamespaceDisk, python_to_show
from stationmaster.simulator.machines.network import Network, call
from stationmaster.simulator.machines.port_forward import ForwardState, PortForward
from stationmaster.simulator.machines.ssh_server import new_host_key
from stationmaster.simulator.machines.stubs import write_wrong_clock

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_INIT = Path(__file__).with_name("namespace_init.sh")
_NAMESPACES = ("--pid", "--mount", "--uts", "--ipc", "--fork", "--kill-child", "--propagation", "private")
_DIRECT_PORT, _PROXY_PORT = 22, 2222
_CLOCK = "/usr/local/lib/clock"
_BOOT_SECONDS = 30.0
_PROC = Path("/proc")


class NamespaceMachine:
    """One machine: a disk in memory, a network link, and a process tree that ends with its pid 1."""

    def __init__(self, folder: Path, network: Network) -> None:
        self._folder = folder
        self._disk = NamespaceDisk(folder / "disk")
        self._network = network
        self._proxy = PortForward("127.0.0.1")
        self._traffic = (0, 0)
        self._launcher: asyncio.subprocess.Process | None = None
        slot_file = folder / "slot"
        self.slot = int(slot_file.read_text()) if slot_file.exists() else 0

    def take_slot(self, taken: set[int]) -> None:
        """Take a free address and keep it until the machine is destroyed."""
        if not self.slot:
            self._folder.mkdir(parents=True, exist_ok=True)
            self.slot = self._network.free_slot(taken)
            (self._folder / "slot").write_text(str(self.slot))

    @property
    def is_up(self) -> bool:
        return self._first_process() is not None

    async def boot(self, spec: MachineSpec, *, api_url: str) -> None:
        """Start the machine: SSH answers and onstart runs."""
        await self._disk.make(spec)
        known = {MARK: spec.marker, "STATIONMASTER_PROVIDER_URL": api_url}
        self._disk.write_settings(spec, known | {"PYTHONPATH": _CLOCK})
        await self._network.plug(self.slot)
        namespace = self._network.namespace(self.slot)
        inside = ("bash", str(_INIT), str(self._disk.path), f"C-{spec.id}", python_to_show())
        with (self._folder / "boot.log").open("wb") as boot_log:
            self._launcher = await asyncio.create_subprocess_exec(
                *("ip", "netns", "exec", namespace, "unshare", *_NAMESPACES, *inside),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=boot_log,
                stderr=boot_log,
                env=known | _container_variables(spec) | dict(spec.environment),
                start_new_session=True,
            )
        await self._wait_until_ssh_answers(self._launcher)

    async def open_ports(self, known: Address | None) -> Address:
        direct = self._network.address(self.slot)
        self._proxy.target = (direct, _PROXY_PORT)
        port = await self._proxy.open(known.proxy_port if known else 0)
        return Address(direct_host=direct, direct_port=_DIRECT_PORT, proxy_host="127.0.0.1", proxy_port=port)

    async def shut(self) -> None:
        await self._proxy.close()

    async def halt(self) -> None:
        """Kill pid 1, and with it every process; the disk and the address stay."""
        await self.shut()
        pid = self._first_process()
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            while self._first_process() == pid:  # noqa: ASYNC110  # not our child: it can only be polled
                await asyncio.sleep(0.005)
        if self._launcher is not None:
            with suppress(ProcessLookupError):  # it ends with pid 1, unless the boot was cancelled before that existed
                os.kill(self._launcher.pid, signal.SIGKILL)
            await self._launcher.wait()
            self._launcher = None
        (self._folder / "pid").unlink(missing_ok=True)

    async def destroy(self) -> None:
        await self.halt()
        await self._network.unplug(self.slot)
        await self._disk.remove()
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    def authorize(self, ssh_keys: tuple[str, ...]) -> None:
        (self._files() / "etc/ssh/service_keys").write_text("".join(f"{key}\n" for key in ssh_keys))

    def log(self) -> str:
        try:
            return (self._files() / "var/log/container.log").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    async def telemetry(self) -> MachineTelemetry:
        query = "--query-gpu=utilization.gpu,temperature.gpu,memory.used"
        program = ("/usr/local/bin/nvidia-smi", query, "--format=csv,noheader,nounits")
        try:
            output = await call("nsenter", "-t", str(self._first_process()), "-m", "-p", *program)
        except OSError:
            return MachineTelemetry()  # it stopped meanwhile, or its disk is full
        gpus = [[float(value) for value in line.split(", ")] for line in output.splitlines()]
        return MachineTelemetry(
            gpu_percent=sum(gpu[0] for gpu in gpus) / len(gpus),
            gpu_celsius=gpus[0][1],
            gpu_memory_gb=sum(gpu[2] for gpu in gpus) / 1000,
            memory_gb=0.5,
            disk_used_gb=self._disk.used_bytes() / 1e9,
        )

    def take_traffic(self) -> tuple[int, int]:
        now, before = self._network.traffic(self.slot), self._traffic
        self._traffic = now
        return max(0, now[0] - before[0]), max(0, now[1] - before[1])

    def processes(self) -> list[int]:
        """All processes except pid 1, its helpers and the SSH servers."""
        inside = self._inside()
        keepers = {pid for pid in inside if str(_INIT) in _command_of(pid)}
        return [
            pid
            for pid in inside
            if pid not in keepers
            and not _name_of(pid).startswith("sshd")
            and not (" ".join(_command_of(pid)).strip() in ("sleep 0.05", "cat") and _parent_of(pid) in keepers)
        ]

    async def refuse_ssh(self, *, door: str, refuse: bool) -> None:
        if not self.is_up:
            return
        if door in ("proxy", "both"):
            await self._proxy.set(ForwardState.REFUSING if refuse else ForwardState.OPEN)
        if door in ("direct", "both"):
            flag = self._files() / f"run/refuse-{_DIRECT_PORT}"
            if refuse:
                flag.touch()
                await _until_ended(self._end_ssh(_DIRECT_PORT))  # one that still dies accepts, and then resets
            else:
                flag.unlink(missing_ok=True)

    def swap_host_key(self) -> None:
        new_host_key(self._files() / "etc/ssh/served_host_key")
        for port in (_DIRECT_PORT, _PROXY_PORT):
            self._end_ssh(port)

    async def fill_disk(self) -> None:
        await self._disk.fill()

    def skew_clock(self, seconds: float) -> None:
        files = self._files()
        write_wrong_clock(files / _CLOCK.lstrip("/"), files / "usr/local/bin", seconds, seen_as=_CLOCK)

    async def _wait_until_ssh_answers(self, launcher: asyncio.subprocess.Process) -> None:
        deadline = asyncio.get_running_loop().time() + _BOOT_SECONDS
        while asyncio.get_running_loop().time() < deadline:
            if launcher.returncode is not None:
                output = (self._folder / "boot.log").read_text(errors="replace").strip()
                raise OSError(f"the machine stopped at once: {output[-300:]}")
            if first := _child_of(launcher.pid):
                (self._folder / "pid").write_text(f"{first} {_start_time_of(first)}")
                if await _answers(self._network.address(self.slot), _DIRECT_PORT):
                    return
            await asyncio.sleep(0.02)
        raise OSError("SSH on the machine does not answer")

    def _first_process(self) -> int | None:
        """The machine's pid 1, as a pid of this computer; None if it is not running."""
        try:
            pid, started = (self._folder / "pid").read_text().split()
            return int(pid) if _start_time_of(int(pid)) == started else None
        except (OSError, ValueError):
            return None

    def _files(self) -> Path:
        """The machine's root: through /proc while it runs, else directly on its disk."""
        pid = self._first_process()
        return Path(f"/proc/{pid}/root") if pid is not None else self._disk.written

    def _inside(self) -> list[int]:
        first = self._first_process()
        return _processes_beside(first) if first is not None else []

    def _end_ssh(self, port: int) -> list[int]:
        """Kill the SSH server of this port and its sessions; their commands continue. Returns what was killed."""
        servers = [pid for pid in self._inside() if _name_of(pid).startswith("sshd")]
        listening = {pid for pid in servers if f"-p {port} -o PidFile" in " ".join(_command_of(pid))}
        killed = [pid for pid in servers if pid in listening or _parent_of(pid) in listening]
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        return killed


async def _until_ended(pids: list[int]) -> None:
    for _ in range(500):
        if not any(_start_time_of(pid) for pid in pids):
            return
        await asyncio.sleep(0.01)


def _container_variables(spec: MachineSpec) -> dict[str, str]:
    return {
        "PATH": SYSTEM_PATH,
        "LANG": "C.UTF-8",
        "HOME": "/root",
        "CONTAINER_ID": str(spec.id),
        "CONTAINER_API_KEY": spec.api_key,
        "VAST_CONTAINERLABEL": f"C.{spec.id}",
        "VAST_TCP_PORT_22": str(_DIRECT_PORT),
    }


async def _answers(host: str, port: int) -> bool:
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection(host, port), 1.0)
    except (OSError, TimeoutError):
        return False
    try:
        return (await asyncio.wait_for(reader.read(4), 2.0)) == b"SSH-"
    except (OSError, TimeoutError):
        return False
    finally:
        writer.transport.abort()


def _child_of(pid: int) -> int | None:
    return next((child for child in _all_pids() if _parent_of(child) == pid), None)


def _parent_of(pid: int) -> int | None:
    fields = _stat(pid)
    return int(fields[1]) if fields else None


def _start_time_of(pid: int) -> str:
    """When the process started: detects a pid that was reused; empty for one that has ended."""
    fields = _stat(pid)
    return fields[19] if fields and fields[0] != "Z" else ""


def _name_of(pid: int) -> str:
    return _read_proc(pid, "comm").decode(errors="replace").strip()


def _command_of(pid: int) -> list[str]:
    """The arguments of the command line."""
    return _read_proc(pid, "cmdline").decode(errors="replace").split("\0")


def _processes_beside(pid: int) -> list[int]:
    """All processes in the same pid namespace, this one included."""
    table = _table(pid)
    return [other for other in _all_pids() if table is not None and _table(other) == table]


def _all_pids() -> list[int]:
    return [int(entry.name) for entry in _PROC.glob("[0-9]*")]


def _stat(pid: int) -> list[str]:
    return _read_proc(pid, "stat").decode(errors="replace").rpartition(")")[2].split()


def _read_proc(pid: int, name: str) -> bytes:
    try:
        return (_PROC / str(pid) / name).read_bytes()
    except OSError:
        return b""


def _table(pid: int) -> Path | None:
    try:
        return (_PROC / str(pid) / "ns/pid").readlink()
    except OSError:
        return None
