"""Takes one message to one person: the first way that works, in their order."""

from __future__ import annotations

from collections.abc import Mapping

from stationmaster.control.messages.address_book import Recipient
from stationmaster.errors import NotifyBusy, NotifyError
from stationmaster.event_log import get_logger
from stationmaster.model import Delivery
from stationmaster.notify.base import Channel, Rendered

log = get_logger("stationmaster.notify")

NO_CHANNEL = "none"
_INBOX = "inbox"
_LONGEST_WAIT_SECONDS = 60.0  # a service that asks for more is passed over
_RETRY_SECONDS = (5.0, 15.0, 60.0, 300.0, 900.0)


class Courier:
    def __init__(self, channels: Mapping[str, Channel]) -> None:
        self._channels = channels

    async def deliver(self, recipient: Recipient, message: Rendered, *, tries: int | None = None) -> Delivery:
        """Try the person's ways in order. `tries` is how often it was tried before; None: there is only this once.

        A way that fails leads to the next one. While tries are left, trouble that may pass is waited out before the
        inbox counts as delivered, and before we give up.
        """
        if not recipient.routes:
            log.warning(f"No notification channel for user {recipient.name}")
            return Delivery(channel=NO_CHANNEL, success=False, problem="no channel")
        patient = tries is not None and tries < len(_RETRY_SECONDS)
        problems, may_pass = [], False
        for route in recipient.routes:
            if route.channel == _INBOX and may_pass and patient:
                break
            try:
                await self._channels[route.channel].send(route.address, message)
                return Delivery(channel=route.channel, success=True)
            except NotifyError as problem:
                log.warning("notify.failed", user=recipient.name, channel=route.channel, problem=str(problem))
                problems.append(f"{route.channel}: {problem}")
                if isinstance(problem, NotifyBusy):
                    may_pass = True
                    if patient and (wait := problem.retry_after_seconds) is not None and wait <= _LONGEST_WAIT_SECONDS:
                        return _later(wait, problems)
        if may_pass and patient:
            assert tries is not None
            return _later(_RETRY_SECONDS[tries], problems)
        return Delivery(channel=NO_CHANNEL, success=False, problem="; ".join(problems))

    async def try_each(self, recipient: Recipient, message: Rendered) -> list[Delivery]:
        """Send by every way of a person, so that they know which work."""
        found = []
        for route in recipient.routes:
            try:
                await self._channels[route.channel].send(route.address, message)
                found.append(Delivery(channel=route.channel, success=True))
            except NotifyError as problem:
                said = f"{problem} ({problem.hint})" if problem.hint else str(problem)
                found.append(Delivery(channel=route.channel, success=False, problem=said))
        return found


def _later(seconds: float, problems: list[str]) -> Delivery:
    return Delivery(channel=NO_CHANNEL, success=False, retry_in=seconds, problem="; ".join(problems))
