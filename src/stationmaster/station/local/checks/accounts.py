"""Checks of the providers: what is set for the default one, the keys of rented accounts, and the clock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stationmaster.control.wiring.providers import Waiting, build_providers, ssh_key_path
from stationmaster.control.wiring.required_settings import require_set_up
from stationmaster.errors import AccessRefused, ConfigInvalid, ProviderError, StationmasterError
from stationmaster.money import format_dollars
from stationmaster.providers.base import KnowsKeys, KnowsMoney, KnowsTime, Provider
from stationmaster.providers.vastai.ssh_keys import check, read_pair
from stationmaster.settings import Settings
from stationmaster.settings.machines import vast_name
from stationmaster.station.checks import CheckLevel, CheckResult, failed, passed, warned
from stationmaster.station.local.installation import Installation

_SECONDS = 20.0  # for all that one account is asked
_SKEW_WARNED = 30.0
_SKEW_FAILED = 300.0  # signatures and tokens expire in a few minutes
_CLOCK_HINT = "set this computer's clock, and let it follow the network's time: `timedatectl set-ntp true`"
_COMPARE_HINT = "a wrong clock breaks TLS and signatures: compare `date -u` with another clock"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What one account answered."""

    results: tuple[CheckResult, ...]
    clock_ahead_seconds: float | None = None


def account_results(installation: Installation, *, has_store: bool, offline: bool) -> Iterator[CheckResult]:
    settings = installation.settings
    yield from _default_provider(settings)
    accounts = [vast_name(account) for account in settings.vastai.keys_by_account()]
    why = "--offline" if offline else None if has_store else "the store cannot be opened"
    if why is not None:
        yield from (passed("account", f"{name}: key set, not checked ({why})") for name in accounts)
        yield passed("clock", f"not checked ({why})")
        return
    answers = asyncio.run(_ask_all(installation, accounts))
    for asked in answers:
        yield from asked.results
    told = [("Vast.ai's", asked.clock_ahead_seconds) for asked in answers if asked.clock_ahead_seconds is not None]
    if not settings.uses_sqlite:
        told.append(("the database's", time.time() - installation.store.now()))
    yield clock_result(told, has_accounts=bool(accounts))


def _default_provider(settings: Settings) -> Iterator[CheckResult]:
    """Whether the default provider has what it needs, and what may be rented there; nothing for this computer."""
    name = settings.provider
    try:
        require_set_up(name, settings)
    except ConfigInvalid as problem:
        yield failed("provider", f"{name}: {problem}", problem.hint or "")
        return
    if name.partition(":")[0] == "vastai":
        gpus, cap = ", ".join(settings.vastai.preferred_gpus), format_dollars(settings.vastai.max_bid_per_hour)
        yield passed("provider", f"{name}: key set, GPUs {gpus} preferred, at most {cap} per hour")
    elif name == "ssh":
        yield passed("provider", f"ssh: {', '.join(host.name for host in settings.ssh.hosts)}")


async def _ask_all(installation: Installation, accounts: Sequence[str]) -> list[_Asked]:
    if not accounts:
        return []
    settings = installation.settings
    waiting = Waiting(hurried=True, pause=installation.pause)
    providers = build_providers(settings, installation.environ, installation.store, waiting=waiting)
    return await asyncio.gather(*(_ask(name, providers[name], settings) for name in accounts))


async def _ask(name: str, provider: Provider, settings: Settings) -> _Asked:
    try:
        async with asyncio.timeout(_SECONDS):
            results = [*await _credit(name, provider, settings), *await _known_key(name, provider, settings)]
    except TimeoutError:
        results = [_problem(name, settings, f"no answer within {_SECONDS:g} s")]
    except AccessRefused as refused:
        results = [failed("account", f"{name}: {refused}", refused.hint or "")]
    except ProviderError as problem:
        results = [_problem(name, settings, str(problem), problem.hint or "")]
    ahead = provider.clock_ahead_seconds if isinstance(provider, KnowsTime) else None
    return _Asked(results=tuple(results), clock_ahead_seconds=ahead)


def _problem(name: str, settings: Settings, problem: str, hint: str = "") -> CheckResult:
    """A service that cannot be asked is a failure only where jobs go by default."""
    level = CheckLevel.FAIL if name == settings.provider else CheckLevel.WARN
    return CheckResult("account", level, f"{name}: {problem}", hint)


async def _credit(name: str, provider: Provider, settings: Settings) -> list[CheckResult]:
    if not isinstance(provider, KnowsMoney):
        return []
    credit, low = await provider.credit(), settings.notify.low_credit
    detail = f"{name}: key accepted, {format_dollars(credit)} credit"
    if low and credit < low:
        return [warned("account", f"{detail}, less than notify.low_credit ({format_dollars(low)})", "add credit")]
    return [passed("account", detail)]


async def _known_key(name: str, provider: Provider, settings: Settings) -> list[CheckResult]:
    """Nothing if all is well, or if there is no key pair, which has a check of its own."""
    try:
        pair = read_pair(ssh_key_path(settings))
    except StationmasterError:
        return []
    if not isinstance(provider, KnowsKeys) or (await check(pair, provider)).is_ours_known:
        return []
    detail = f"{name} does not have our SSH key: machines rented now would refuse the login"
    level = CheckLevel.FAIL if name == settings.provider else CheckLevel.WARN
    return [CheckResult("account", level, detail, "run `stationmaster keys setup`")]


def clock_result(ahead_of: Sequence[tuple[str, float]], *, has_accounts: bool) -> CheckResult:
    """This computer's clock beside those of others: by whose, how many seconds it is ahead; the worst counts."""
    if not ahead_of and not has_accounts:
        return passed("clock", "not checked: no account that could tell the time is set up")
    if not ahead_of:
        return warned("clock", "not checked: no account's service told the time", _COMPARE_HINT)
    whose, ahead = max(ahead_of, key=lambda told: abs(told[1]))
    off = f"{abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} {whose}"
    if abs(ahead) > _SKEW_FAILED:
        return failed("clock", off, _CLOCK_HINT)
    return warned("clock", off, _CLOCK_HINT) if abs(ahead) > _SKEW_WARNED else passed("clock", f"right: {off}")
