"""The network of namespace machines: a bridge on this computer, and a veth pair to each machine."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from stationmaster.errors import ConfigInvalid

_FIRST_SLOT, _LAST_SLOT = 2, 250
_BRIDGES = 200


class Network:
    """10.222.N.0/24 on its own bridge, so that several simulators can run at the same time."""

    def __init__(self) -> None:
        self.number = -1

    @property
    def host(self) -> str:
        """This computer's address, as the machines see it."""
        return f"10.222.{self.number}.1"

    def address(self, slot: int) -> str:
        return f"10.222.{self.number}.{slot}"

    def namespace(self, slot: int) -> str:
        return f"sm{self.number}-{slot}"

    async def open(self) -> None:
        for number in range(_BRIDGES):
            if await succeeds("ip", "link", "add", f"smbr{number}", "type", "bridge"):
                self.number = number
                await call("ip", "addr", "add", f"{self.host}/24", "dev", f"smbr{number}")
                await call("ip", "link", "set", f"smbr{number}", "up")
                return
        raise ConfigInvalid(
            "cannot create a network bridge for the machines", hint="the namespaces back end needs root on Linux"
        )

    def reopen(self, number: int) -> None:
        """Adopt the network of an earlier simulator."""
        self.number = number

    async def close(self) -> None:
        await succeeds("ip", "link", "del", f"smbr{self.number}")

    async def plug(self, slot: int) -> None:
        """Create a network namespace with this slot's address; may be repeated."""
        namespace, cable = self.namespace(slot), self._cable(slot)
        if not await succeeds("ip", "netns", "add", namespace):
            await self.pull(slot, out=False)
            return
        await call("ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", namespace)
        await call("ip", "link", "set", cable, "master", f"smbr{self.number}", "up")
        await call("ip", "-n", namespace, "addr", "add", f"{self.address(slot)}/24", "dev", "eth0")
        await call("ip", "-n", namespace, "link", "set", "eth0", "up")
        await call("ip", "-n", namespace, "link", "set", "lo", "up")

    async def pull(self, slot: int, *, out: bool) -> None:
        """Set the machine's link down, or up again."""
        await succeeds("ip", "link", "set", self._cable(slot), "down" if out else "up")

    async def unplug(self, slot: int) -> None:
        await succeeds("ip", "netns", "del", self.namespace(slot))
        await succeeds("ip", "link", "del", self._cable(slot))

    def traffic(self, slot: int) -> tuple[int, int]:
        """Bytes into and out of the machine since it was plugged in."""
        statistics = Path(f"/sys/class/net/{self._cable(slot)}/statistics")
        with contextlib.suppress(OSError):
            return int((statistics / "tx_bytes").read_text()), int((statistics / "rx_bytes").read_text())
        return 0, 0

    def free_slot(self, taken: set[int]) -> int:
        for slot in range(_FIRST_SLOT, _LAST_SLOT):
            if slot not in taken:
                return slot
        raise ConfigInvalid("all addresses of the machines' network are in use")

    def _cable(self, slot: int) -> str:
        return f"smv{self.number}-{slot}"


async def call(*arguments: str) -> str:
    """Run a program and return its output. Raises OSError with its output if it fails."""
    status, output = await _run(arguments)
    if status != 0:
        raise OSError(f"{' '.join(arguments)}: {output.strip()}")
    return output


async def succeeds(*arguments: str) -> bool:
    return (await _run(arguments))[0] == 0


async def _run(arguments: tuple[str, ...]) -> tuple[int, str]:
    child = await asyncio.create_subprocess_exec(
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await child.communicate()
    finally:
        if child.returncode is None:  # the boot that needed it was cancelled
            child.kill()
            await child.wait()
    return child.returncode or 0, output.decode(errors="replace")
