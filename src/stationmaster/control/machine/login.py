"""From a running machine to a usable one: key, host key, login, pre-flight check."""

from __future__ import annotations

import json
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stationmaster.control.flow.step import cut_off, give_up, go_on, recovered, wait
from stationmaster.control.flow.world import Visit, World
from stationmaster.control.machine.access import may_get_secrets
from stationmaster.control.machine.drivers import advice, install, machine_checked_event, may_install, missing_parts
from stationmaster.errors import CommandFailed, DiskFull, ProviderError, RemoteError, Unreachable
from stationmaster.lifecycle import Move
from stationmaster.model import Access, BadMachine, Job, Machine, Reason, Rental, SshAccess
from stationmaster.model.copying import changed
from stationmaster.providers.base import KnowsHostKeys, KnowsKeys
from stationmaster.recipes.schema import Needs
from stationmaster.remote.base import check
from stationmaster.remote.host import Host
from stationmaster.store.writes import NewEvent, Write

_LOGIN_SECONDS = 30.0
_HOST_KEY_SECONDS = 60.0
_LINK_PROBE_BYTES = 1 << 20
_SLOWEST_LINK = 100_000  # bytes per second; below that a dataset takes longer than the training
_GIB = 1024**3
_HELLO = (
    "import json, os, sys; assert sys.version_info >= (3, 8), 'Python 3.8 or newer is needed'; "
    "print(json.dumps({'job_root': os.environ.get('STATIONMASTER_JOB_ROOT', '')}))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogIn:
    """Log in: only a login with a working Python and GPU shows that a running machine is usable."""

    rental: Rental
    machine: Machine


async def log_in(action: LogIn, job: Job, visit: Visit, world: World) -> Write:
    """Try to log in once; every part can be repeated."""
    try:
        job = await _with_key_attached(action, job, world)
        access = await pinned(_chosen(action.machine, job), action.rental, action.machine, visit, world)
        if access is None:
            return wait(job, world.policy.provider_look_seconds)  # the machine has not printed its keys yet
        return await _enter(action, access, job, visit, world)
    except (Unreachable, ProviderError) as problem:
        await world.forget_remote(action.rental.label)
        job = with_login_problem(job, f"{problem}; {problem.hint}" if problem.hint else str(problem))
        return cut_off(job, now=visit.now, policy=world.policy, problem=str(problem))
    except (RemoteError, DiskFull) as problem:  # the machine answered, and cannot be used
        await world.forget_remote(action.rental.label)
        return _refused(action, job, str(problem), now=visit.now)


def with_login_problem(job: Job, problem: str) -> Job:
    """The job with the last login problem noted, for the explanation should the login time out."""
    return changed(job, machine=changed(job.machine, login_problem=problem))


def blame(rental: Rental | None, why: str) -> tuple[BadMachine, ...]:
    """The host of a rental, to be avoided for a while; the ids of offers change and identify nothing."""
    if rental is None or rental.offer is None or rental.offer.machine_id is None:
        return ()
    return (BadMachine(provider=rental.provider, machine_id=rental.offer.machine_id, why=why),)


async def pinned(access: Access, rental: Rental, machine: Machine, visit: Visit, world: World) -> Access | None:
    """The access with its host keys pinned; unverified if they do not appear in time, None while they may."""
    if not isinstance(access, SshAccess) or access.host_keys or access.use_config:
        return access
    provider = world.provider(rental.provider)
    if isinstance(provider, KnowsHostKeys):
        keys = await provider.host_keys(machine.provider_id)
        if keys:
            return changed(access, host_keys=keys)
        is_ours = visit.job.spec.adopted is None  # only our own onstart prints the keys
        if is_ours and visit.now - (rental.held_at or visit.now) < _HOST_KEY_SECONDS:
            return None
    return changed(access, unverified=True)


def preflight_problem(facts: dict[str, Any], needs: Needs, *, bytes_per_second: float | None) -> str | None:
    """Why a machine cannot be used, decided before any data goes there; None if it can."""
    free = facts.get("disk_free_bytes")
    if free is not None and free < needs.disk_gib * _GIB * 0.9:  # file systems reserve some
        return f"only {free / _GIB:.1f} GiB of disk are free, {needs.disk_gib:g} are needed"
    gpus = facts.get("gpus") or []
    if len(gpus) < needs.gpus:
        return f"{len(gpus)} GPU can be seen, {needs.gpus} are needed (driver: {facts.get('driver') or 'none'})"
    for gpu in gpus[: needs.gpus]:
        total = gpu.get("memory_total_mib")
        if total is not None and total < needs.vram_gib * 1024 * 0.9:  # a 24 GB card reports a little less
            return f"the GPU has {total / 1024:.1f} GiB of memory, {needs.vram_gib:g} are needed"
    cuda = facts.get("cuda")
    if needs.gpus and needs.cuda is not None and cuda is not None and cuda < needs.cuda:
        return f"its driver supports CUDA {cuda:g}, {needs.cuda:g} is needed (driver: {facts.get('driver')})"
    if needs.gpus and facts.get("allocation") not in ("ok", None):
        return f"the GPU cannot be used: {facts['allocation']}"
    if bytes_per_second is not None and bytes_per_second < _SLOWEST_LINK:
        return f"the link carries only {bytes_per_second / 1000:.0f} kB/s"
    return None


def engine_problem(facts: dict[str, Any], runtime: str) -> str | None:
    """Why a recipe that runs in containers cannot run here; the engine is checked, never installed unasked."""
    tools = facts.get("tools")
    if runtime == "host" or tools is None or runtime in tools:
        return None
    found = ", ".join(tools) or "nothing"
    return f"{runtime} is not installed there and the recipe runs in containers (found: {found})"


def _chosen(machine: Machine, job: Job) -> Access:
    """The better address first; after a failed login the other one."""
    return machine.accesses[job.setbacks.failures % len(machine.accesses)]


async def _with_key_attached(action: LogIn, job: Job, world: World) -> Job:
    """The key was sent with the create; some hosts lose it, so it is attached once more after the boot."""
    provider = world.provider(action.rental.provider)
    if not isinstance(provider, KnowsKeys) or world.public_key is None or job.machine.key_attached:
        return job
    await provider.attach_key(action.machine.provider_id, world.public_key)
    return changed(job, machine=changed(job.machine, key_attached=True))


async def _enter(action: LogIn, access: Access, job: Job, visit: Visit, world: World) -> Write:
    remote = world.remote(action.rental.label, access)
    answer = await check(remote, ["python3", "-c", _HELLO], timeout=_LOGIN_SECONDS)
    access = _with_job_root(access, answer)
    recipe = visit.recipe
    if recipe.secrets and not may_get_secrets(access, world.policy):
        return _refused(action, job, "its host key could not be verified and the recipe needs secrets", now=visit.now)
    host = world.host(job, action.rental.label, access)
    await host.install(world.trackside)
    facts, events = await _checked(action, host, job, visit, world)
    problem = preflight_problem(facts, recipe.needs, bytes_per_second=await _link_speed(host, access))
    problem = problem or engine_problem(facts, recipe.runtime)
    if problem:
        hint = advice(action.rental, world.policy) if missing_parts(facts, recipe) else ""
        refused = _refused(action, job, problem + hint, now=visit.now)
        return changed(refused, events=(*events, *refused.events))
    entered = changed(
        job.machine,
        access=access,
        label=action.rental.label,
        gpus=action.rental.offer.gpus_text if action.rental.offer else None,
        key_attached=False,
    )
    known = changed(recovered(job), machine=entered)
    where = access.host if isinstance(access, SshAccess) else "this computer"
    events.append(NewEvent(kind="logged_in", payload={"host": where}))
    if isinstance(access, SshAccess) and access.unverified:
        events.append(NewEvent(kind="host_key_unverified", payload={"host": access.host}))
    return go_on(known, Move.REACHABLE, now=visit.now, events=tuple(events), cleared_alerts=("provisioning", "silence"))


async def _checked(
    action: LogIn, host: Host, job: Job, visit: Visit, world: World
) -> tuple[dict[str, Any], list[NewEvent]]:
    """What the machine has, after installing what the recipe needs of its system, where that is allowed."""
    facts = await host.preflight(allocate=visit.recipe.needs.gpus > 0)
    missing = missing_parts(facts, visit.recipe)
    events = [machine_checked_event(facts, missing)]
    if missing and may_install(action.rental, world.policy):
        await visit.record(wait(job, 0.0, events=(NewEvent(kind="installing", payload={"parts": list(missing)}),)))
        await install(host.remote, missing)
        facts = await host.preflight(allocate=visit.recipe.needs.gpus > 0)
        events.append(NewEvent(kind="installed", payload={"parts": list(missing)}))
    return facts, events


def _with_job_root(access: Access, answer: bytes) -> Access:
    """The access with the folder for jobs that the machine's environment names, if it names one."""
    try:
        job_root = json.loads(answer.splitlines()[-1])["job_root"]
    except (IndexError, ValueError, KeyError, TypeError):
        raise CommandFailed(f"the login did not answer as it should: {answer[:200]!r}") from None
    return changed(access, job_root=job_root) if job_root else access


async def _link_speed(host: Host, access: Access) -> float | None:
    """Bytes per second to the machine, by sending an incompressible megabyte; None on this computer."""
    if not isinstance(access, SshAccess):
        return None
    with tempfile.TemporaryDirectory() as folder:
        probe = Path(folder, "probe")
        probe.write_bytes(os.urandom(_LINK_PROBE_BYTES))  # noqa: ASYNC240 (a megabyte, once per machine)
        began = time.monotonic()
        await host.remote.push(probe, host.path("link-probe"))
        return _LINK_PROBE_BYTES / max(time.monotonic() - began, 1e-6)


def _refused(action: LogIn, job: Job, problem: str, *, now: float) -> Write:
    write = give_up(job, Reason.PREFLIGHT_FAILED, now=now, explanation=problem)
    return changed(write, bad_machines=blame(action.rental, problem))
