"""Sends one message to one person, through the first of their channels that works."""

from __future__ import annotations

from collections.abc import Mapping

from stationmaster.control.messages.recipients import Recipient
from stationmaster.errors import NotifyBusy, NotifyError
from stationmaster.event_log import get_logger
from stationmaster.model import Delivery
from stationmaster.notify.base import Channel, Message

log = get_logger("stationmaster.notify")

NO_CHANNEL = "none"
_INBOX = "inbox"
_LONGEST_WAIT_SECONDS = 60.0  # a service that asks for a longer wait is skipped
_RETRY_SECONDS = (5.0, 15.0, 60.0, 300.0, 900.0)


class MessageSender:
    def __init__(self, channels: Mapping[str, Channel]) -> None:
        self._channels = channels

    @property
    def channels(self) -> frozenset[str]:
        """The names of those that are set up."""
        return frozenset(self._channels)

    async def check(self, channel: str, address: str | None) -> str:
        """What the channel's service answers when it is asked and nothing is sent. Raises NotifyError."""
        return await self._channels[channel].check(address)

    async def send(self, recipient: Recipient, message: Message, *, tries: int | None = None) -> Delivery:
        """Try the person's channels in order. `tries` counts the earlier tries; None means that there is only this one.

        After a channel fails, the next one is tried. While tries are left, a temporary failure is retried later before
        the inbox counts as delivered, and before the message counts as failed.
        """
        if not recipient.routes:
            log.warning(f"No notification channel for user {recipient.name}")
            return Delivery(channel=NO_CHANNEL, success=False, problem="no channel")
        may_retry = tries is not None and tries < len(_RETRY_SECONDS)
        problems, is_temporary = [], False
        for route in recipient.routes:
            if route.channel == _INBOX and is_temporary and may_retry:
                break
            try:
                await self._channels[route.channel].send(route.address, message)
                return Delivery(channel=route.channel, success=True)
            except NotifyError as problem:
                log.warning("notify.failed", user=recipient.name, channel=route.channel, problem=str(problem))
                problems.append(f"{route.channel}: {problem}")
                if isinstance(problem, NotifyBusy):
                    is_temporary = True
                    wait = problem.retry_after_seconds
                    if may_retry and wait is not None and wait <= _LONGEST_WAIT_SECONDS:
                        return _retry(wait, problems)
        if is_temporary and may_retry:
            assert tries is not None
            return _retry(_RETRY_SECONDS[tries], problems)
        return Delivery(channel=NO_CHANNEL, success=False, problem="; ".join(problems))

    async def send_through_each(self, recipient: Recipient, message: Message) -> list[Delivery]:
        """Send through every channel of a person, to show which of them work."""
        found = []
        for route in recipient.routes:
            try:
                await self._channels[route.channel].send(route.address, message)
                found.append(Delivery(channel=route.channel, success=True))
            except NotifyError as problem:
                text = f"{problem} ({problem.hint})" if problem.hint else str(problem)
                found.append(Delivery(channel=route.channel, success=False, problem=text))
        return found


def _retry(seconds: float, problems: list[str]) -> Delivery:
    return Delivery(channel=NO_CHANNEL, success=False, retry_in=seconds, problem="; ".join(problems))
