"""Checks of the notification channels: whether they are complete and answer. Nothing is sent to a person."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from stationmaster.control.messages.messaging import Messaging, open_messaging
from stationmaster.control.messages.recipients import Route
from stationmaster.errors import NotifyBusy, NotifyError, StationmasterError
from stationmaster.settings import NotifySettings, Settings
from stationmaster.station.checks import CheckResult, failed, passed, warned
from stationmaster.store.store import Store

_SECONDS = 20.0
_INBOX = "inbox"


def channel_results(settings: Settings, store: Store, *, offline: bool) -> Iterator[CheckResult]:
    yield from _incomplete(settings.notify)
    try:
        found = asyncio.run(_ask_all(settings, store, offline=offline))
    except StationmasterError as problem:  # such as a secret that is no base64
        yield failed("channel", str(problem), problem.hint or "")
        return
    yield from found
    if not found:
        yield passed("channel", "none is set up: messages are in `stationmaster notify inbox` only")


def _incomplete(notify: NotifySettings) -> Iterator[CheckResult]:
    """Addresses whose sender is not set up: messages would not go there, and no error would tell it."""
    people: tuple[tuple[str, Any], ...] = (("notify", notify), ("notify.operators", notify.operators))
    senders = (
        ("telegram_id", notify.telegram_bot_token, "notify.telegram_bot_token"),
        ("discord_id", notify.discord_bot_token, "notify.discord_bot_token"),
        ("email", notify.mail.host, "notify.mail.host"),
    )
    for section, addresses in people:
        for name, sender, lacking in senders:
            if getattr(addresses, name) is not None and sender is None:
                detail = f"{section}.{name} is set, but not {lacking}: no message is sent there"
                yield warned("channel", detail, f"set {lacking}")


async def _ask_all(settings: Settings, store: Store, *, offline: bool) -> list[CheckResult]:
    messaging = open_messaging(settings, store)
    try:
        routes = await asyncio.to_thread(_routes, messaging)
        if offline:
            return [passed("channel", f"{name}: set up, not checked (--offline)") for name, _ in routes]
        return await asyncio.gather(*(_ask(messaging, name, address) for name, address in routes))
    finally:
        await messaging.close()


def _routes(messaging: Messaging) -> list[tuple[str, str | None]]:
    """Channels with the addresses of the settings, and those that only addresses of users in the store need."""
    people = (messaging.recipients.owner(None), *messaging.recipients.operators())
    routes: list[Route] = [route for person in people for route in person.routes if route.channel != _INBOX]
    used = dict.fromkeys((route.channel, route.address) for route in routes)
    idle = [name for name in ("telegram", "discord", "email") if name in messaging.sender.channels]
    return [*used, *((name, None) for name in idle if name not in {channel for channel, _ in used})]


async def _ask(messaging: Messaging, name: str, address: str | None) -> CheckResult:
    shown = name if address is None else f"{name} {_shown(name, address)}"
    try:
        async with asyncio.timeout(_SECONDS):
            answer = await messaging.sender.check(name, address)
    except NotifyBusy as problem:
        return warned("channel", f"{shown}: {problem}", "check the network, then try again")
    except NotifyError as problem:
        return failed("channel", f"{shown}: {problem}", problem.hint or f"`stationmaster notify test` tries {name}")
    except TimeoutError:
        return warned("channel", f"{shown}: no answer within {_SECONDS:g} s", "check the network, then try again")
    return passed("channel", f"{shown}: {answer}; nothing was sent")


def _shown(name: str, address: str) -> str:
    """The address; of one that is a secret, or may contain one, only what is none."""
    if name in ("slack", "apprise", "webhook"):
        parts = urlsplit(address)
        return parts.scheme if name == "apprise" else str(parts.hostname)
    return address
