"""Your own machines over SSH as a provider: a job gets a slot on a host: a folder and the processes with its label.

`own_machine_script` does the work on a host, one call each; the SSH connection is passed in.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from stationmaster.errors import (
    AccessRefused,
    AnswerLost,
    CommandFailed,
    ConfigInvalid,
    HostKeyRefused,
    NoCapacity,
    ProviderBusy,
    ProviderError,
    ProviderFault,
    RemoteError,
    Unreachable,
)
from stationmaster.event_log import get_logger
from stationmaster.model import Label, Listing, Machine, MachineStatus, Offer, Requirements, SshAccess
from stationmaster.money import MicroDollars, format_dollars
from stationmaster.offers import NoOffer, least_vram_mib
from stationmaster.providers import own_machine_script
from stationmaster.settings import OwnHostSettings
from stationmaster.settings.machines import NO_HOSTS_HINT

log = get_logger("stationmaster.ssh")

NAME = "ssh"
T = TypeVar("T")
_GIB = 1024**3


class RunOnHost(Protocol):
    """Runs a command on a host and returns its stdout. Raises RemoteError if it failed or its result is unknown."""

    async def __call__(self, access: SshAccess, argv: Sequence[str], *, input: bytes, timeout: float) -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SshTimeouts:
    """Timeouts of calls to a host, in seconds."""

    look: float = 20.0
    create: float = 20.0
    destroy: float = 120.0


class SshProvider:
    """`pinned_keys` returns the host keys that you have confirmed; without any, known_hosts decides.

    `access` is how a host is reached, if not by its settings, `roots` where its jobs go if they do not say it.
    """

    def __init__(
        self,
        hosts: Sequence[OwnHostSettings],
        *,
        run: RunOnHost,
        pinned_keys: Callable[[OwnHostSettings], tuple[str, ...]],
        limits: SshTimeouts | None = None,
        name: str = NAME,
        access: Callable[[OwnHostSettings], SshAccess] | None = None,
        roots: tuple[str, ...] = own_machine_script.DEFAULT_ROOTS,
    ) -> None:
        self.name = name
        self._roots = roots
        self._reach = access
        self._hosts = {host.name: host for host in hosts}
        self._run = run
        self._pinned_keys = pinned_keys
        self._limits = limits or SshTimeouts()

    @property
    def create_limit_seconds(self) -> float:
        """The script on the host stops at its timeout; the connection's timeout comes first."""
        return 2 * self._limits.create

    async def offers(self, want: Requirements) -> list[Offer]:
        """Hosts that answer and fit: those that failed recently come last.

        If no host has a free slot, full hosts are offered too, so that the job waits for one.
        """
        if not self._hosts:
            raise AccessRefused("none of your own machines is in the settings", hint=NO_HOSTS_HINT)
        roomy, answers = await self._roomy(want)
        if not roomy:
            _raise_first_problem(answers)
        free = [(host, room) for host, room in roomy if room.taken < host.slots]
        return [_offer(host) for host, _ in sorted(free or roomy, key=lambda pair: _rank(pair[0], pair[1], want))]

    async def why_no_offer(self, want: Requirements) -> NoOffer:
        asked = await asyncio.gather(*(self._misfit_now(host, want) for host in self._hosts.values()))
        misfits = [misfit for misfit in asked if misfit is not None]
        remedies = [misfit.remedy for misfit in misfits if misfit.remedy]
        return NoOffer(
            reasons=tuple(misfit.why for misfit in misfits) or ("a machine that fits answers again",),
            remedies=(*dict.fromkeys(remedies), "add a machine that fits to ssh.hosts"),
        )

    async def waiting_reason(self, want: Requirements) -> str | None:
        roomy, _ = await self._roomy(want)
        if not roomy or any(room.taken < host.slots for host, room in roomy):
            return None
        return "every slot is in use: " + ", ".join(f"{room.taken} on {host.name}" for host, room in roomy)

    async def _roomy(self, want: Requirements) -> tuple[list[tuple[OwnHostSettings, _Room]], Sequence[object]]:
        """Hosts that answer and fit, with their room; and what each of the fitting ones answered."""
        fitting = [host for host in self._hosts.values() if _misfit(host, want) is None]
        answers = await asyncio.gather(*(_settled(self._room(host)) for host in fitting))
        rooms = [(host, room) for host, room in zip(fitting, answers, strict=True) if isinstance(room, _Room)]
        return [(host, room) for host, room in rooms if room.disk_free_bytes >= want.disk_gib * _GIB], answers

    async def create(self, offer: Offer, *, label: str, want: Requirements) -> str:
        host = self._host(offer.id)
        asked = {
            "label": label,
            "folder": _folder(label),
            "slots": host.slots,
            "facts": {"host": host.name, "price_per_hour": host.price_per_hour},
        }
        try:
            answer = await self._ask(host, "create", asked, limit_seconds=self._limits.create)
        except Unreachable as problem:
            raise AnswerLost(f"{host.name} may or may not have accepted the job: {problem}") from problem
        except (RemoteError, ConfigInvalid) as problem:
            raise _as_provider_error(host, problem) from problem
        if "full" in answer:
            raise ProviderBusy(f"all {host.slots} slots of {host.name} are taken")
        if "refused" in answer:
            raise NoCapacity(f"{host.name}: {answer['refused']}")
        return f"{host.name}/{label}"

    async def listing(self) -> Listing:
        """Complete only if every host answered: machines on a silent host are unknown, never gone."""
        answers = await asyncio.gather(*(_settled(self._machines(host)) for host in self._hosts.values()))
        found = [answer for answer in answers if not isinstance(answer, ProviderError)]
        if not found:
            _raise_first_problem(answers)
        machines = tuple(machine for of_host in found for machine in of_host)
        return Listing(machines=machines, complete=len(found) == len(answers), account=self.name)

    async def describe(self, provider_id: str) -> Machine | None:
        host, label = self._host_and_label(provider_id)
        if host is None:
            return None
        answer = await self._look(host, "describe", {"label": label})
        return None if answer["machine"] is None else self._machine(host, answer["machine"])

    async def destroy(self, provider_id: str) -> None:
        host, label = self._host_and_label(provider_id)
        if host is None:
            return
        try:
            await self._ask(host, "destroy", {"label": label}, limit_seconds=self._limits.destroy)
        except (RemoteError, ConfigInvalid) as problem:
            raise _as_provider_error(host, problem) from problem

    async def _misfit_now(self, host: OwnHostSettings, want: Requirements) -> _Misfit | None:
        """As `_misfit`, and whether it answers and has the disk."""
        if (misfit := _misfit(host, want)) is not None:
            return misfit
        room = await _settled(self._room(host))
        if not isinstance(room, _Room):
            return _Misfit(str(room))
        free_gib = room.disk_free_bytes / _GIB
        if free_gib >= want.disk_gib:
            return None
        why = f"{host.name} has {free_gib:.3g} GiB of free disk ({want.disk_gib:.3g} needed)"
        return _Misfit(why, f"free some disk on {host.name}")

    async def _room(self, host: OwnHostSettings) -> _Room:
        answer = await self._look(host, "look_for_room", {})
        if "refused" in answer:
            raise ProviderFault(f"{host.name}: {answer['refused']}")
        return _Room(taken=int(answer["taken"]), disk_free_bytes=int(answer["disk_free_bytes"]))

    async def _machines(self, host: OwnHostSettings) -> list[Machine]:
        """The machines created under this host's name: one computer may be in the settings twice."""
        answer = await self._look(host, "survey", {})
        return [self._machine(host, facts) for facts in answer["machines"] if facts.get("host") == host.name]

    async def _look(self, host: OwnHostSettings, verb: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return await self._ask(host, verb, asked, limit_seconds=self._limits.look)
        except (RemoteError, ConfigInvalid) as problem:
            raise _as_provider_error(host, problem) from problem

    async def _ask(
        self, host: OwnHostSettings, verb: str, asked: Mapping[str, Any], *, limit_seconds: float
    ) -> dict[str, Any]:
        roots = self._roots if host.job_root is None else (host.job_root,)
        arguments = json.dumps({**asked, "roots": roots, "limit_seconds": limit_seconds})
        with log.timed("provider.called", provider=self.name, host=host.name, call=verb):
            output = await self._run(
                self._access(host),
                ["python3", "-", verb, arguments],
                input=Path(own_machine_script.__file__).read_bytes(),  # noqa: ASYNC240 (a few kilobytes)
                timeout=limit_seconds,
            )
        return _answer(host, output)

    def _access(self, host: OwnHostSettings) -> SshAccess:
        """User and keys for the host; your SSH configuration has the rest."""
        if self._reach is not None:
            return self._reach(host)
        return SshAccess(
            host=host.address,
            port=host.port or 0,
            user=host.user or "",
            job_root=host.job_root or "",
            key_path=None if host.key is None else str(host.key),
            host_keys=self._pinned_keys(host),
            use_config=True,
        )

    def _machine(self, host: OwnHostSettings, facts: Mapping[str, Any]) -> Machine:
        label = str(facts["label"])
        ending = bool(facts.get("ending"))
        return Machine(
            provider_id=f"{host.name}/{label}",
            label=label,
            status=MachineStatus.FAILED if ending else MachineStatus.RUNNING,
            created_at=float(facts.get("created_at", 0.0)),
            accesses=() if ending else (self._access_to(host, facts),),
            price_per_hour=MicroDollars(int(facts.get("price_per_hour", 0))),
            gpu=host.gpu,
            gpus=host.gpus,
            machine_id=host.name,
            message="being destroyed" if ending else None,
        )

    def _access_to(self, host: OwnHostSettings, facts: Mapping[str, Any]) -> SshAccess:
        """Every command has the label in its environment, so that the machine's processes can be found."""
        environment = (
            (own_machine_script.VARIABLE, str(facts["label"])),
            ("STATIONMASTER_JOB_ROOT", str(facts["job_root"])),
            ("STATIONMASTER_GUARD_FOLDER", str(facts["folder"])),
            ("TMPDIR", f"{facts['folder']}/tmp"),
        )
        return replace(self._access(host), job_root=str(facts["job_root"]), environment=environment)

    def _host_and_label(self, provider_id: str) -> tuple[OwnHostSettings | None, str]:
        """No host for an id that `create` never returned. Raises ProviderFault for an unknown host."""
        name, _, label = provider_id.partition("/")
        return (None if Label.parse(label) is None else self._host(name)), label

    def _host(self, name: str) -> OwnHostSettings:
        try:
            return self._hosts[name]
        except KeyError:
            raise ProviderFault(
                f"{name} is no longer in the settings, so what runs there is unknown", hint="add it to ssh.hosts"
            ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Room:
    taken: int
    disk_free_bytes: int


@dataclass(frozen=True, slots=True)
class _Misfit:
    why: str
    remedy: str = ""


def _misfit(host: OwnHostSettings, want: Requirements) -> _Misfit | None:
    """What the settings say against the host; None if it fits."""
    if host.gpus < want.gpus:
        return _Misfit(f"{host.name} has {host.gpus or 'no'} GPU in the settings ({want.gpus} needed)")
    if want.gpus and host.vram_gib * 1024 < least_vram_mib(want.vram_gib):
        have = f"{host.vram_gib:g} GiB of GPU memory in the settings"
        return _Misfit(f"{host.name} has {have} ({want.vram_gib:g} needed)")
    if want.max_price_per_hour is not None and host.price_per_hour > want.max_price_per_hour:
        price = format_dollars(host.price_per_hour, 3)
        why = f"{host.name} is above the cap of {format_dollars(want.max_price_per_hour, 3)} per hour"
        return _Misfit(why, f"submit with --max-price {price.lstrip('$')} or more")
    return None


def _rank(host: OwnHostSettings, room: _Room, want: Requirements) -> tuple[bool, int, int]:
    return host.name in want.avoided_machines, host.price_per_hour, room.taken


def _offer(host: OwnHostSettings) -> Offer:
    return Offer(
        id=host.name,
        provider=NAME,
        price_per_hour=host.price_per_hour,
        gpu=host.gpu,
        gpus=host.gpus,
        vram_gib=host.vram_gib,
        machine_id=host.name,
    )


async def _settled(asked: Awaitable[T]) -> T | ProviderError:
    """The answer or the error: one silent host must not hide the others."""
    try:
        return await asked
    except ProviderError as problem:
        return problem


def _raise_first_problem(answers: Sequence[object]) -> None:
    for answer in answers:
        if isinstance(answer, ProviderError):
            raise answer


def _folder(label: str) -> str:
    """The job's folder below the job root."""
    parsed = Label.parse(label)
    if parsed is None:
        raise NoCapacity(f"{label!r} is not a job's label")
    return parsed.job


def _answer(host: OwnHostSettings, output: bytes) -> dict[str, Any]:
    """The last line as JSON: a login may print a greeting before it."""
    try:
        answer = json.loads(output.splitlines()[-1])
    except (IndexError, ValueError):
        answer = None
    if not isinstance(answer, dict):
        raise CommandFailed(f"{host.name} gave an unreadable answer: {output[-200:]!r}")
    return answer


def _as_provider_error(host: OwnHostSettings, problem: RemoteError | ConfigInvalid) -> ProviderError:
    if isinstance(problem, HostKeyRefused):
        return AccessRefused(
            f"{host.name} shows a host key that you have not confirmed; nothing was sent",
            hint=f"compare it with the machine's host key, then run `stationmaster keys trust {host.name}`",
        )
    if isinstance(problem, ConfigInvalid):
        return AccessRefused(f"{host.name}: {problem}", hint=problem.hint)
    if isinstance(problem, Unreachable):
        return ProviderBusy(f"{host.name} does not answer: {problem}", hint=problem.hint)
    return ProviderFault(f"{host.name}: {problem}", hint=problem.hint)
