"""Follows events and alerts, queues a message for each in the outbox, and sends what is due.

An event becomes exactly one message per person and purpose, no matter how many processes follow it. A message is sent
at least once: if a worker dies between the service's answer and our record of it, another worker sends it again after
the lease expires. Services with idempotency keys (webhooks, Discord for some minutes) still deliver it once; Telegram,
Slack and e-mail have none, so a crash at that moment may deliver a message twice. No message is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import Any, TypeVar

from stationmaster.control.flow.clock import boottime
from stationmaster.control.messages.composer import MessageComposer, stored_message
from stationmaster.control.messages.recipients import Recipient, Recipients, quiet_seconds_left
from stationmaster.control.messages.sender import MessageSender
from stationmaster.errors import LeaseLost, StoreError
from stationmaster.event_log import get_logger
from stationmaster.model import Delivery
from stationmaster.notify.base import Message, Priority
from stationmaster.notify.templates import EVENT_KINDS
from stationmaster.store.outbox import NewMessage, QueuedMessage
from stationmaster.store.store import Store

log = get_logger("stationmaster.notify")

_EVENTS, _ALERTS = "events", "alerts"
_PAGE = 500
_BATCH = 50

Answer = TypeVar("Answer")
_Followed = tuple[int, float, Callable[[], list[NewMessage]]]
"""(number, when, what composes its messages)"""


class Notifier:
    """A loop of the worker. Several may run on one store."""

    def __init__(
        self,
        store: Store,
        recipients: Recipients,
        sender: MessageSender,
        composer: MessageComposer,
        *,
        look_seconds: float = 1.0,
        lookback_seconds: float = 60.0,
        lease_seconds: float = 120.0,
    ) -> None:
        self._store = store
        self._recipients = recipients
        self._sender = sender
        self._composer = composer
        self._look_seconds = look_seconds
        self._lookback_seconds = lookback_seconds  # numbers are not in the order of commits
        self._lease_seconds = lease_seconds
        self._seen: dict[str, set[int]] = {_EVENTS: set(), _ALERTS: set()}
        self._positions: dict[str, int] = {}

    async def run(self, owner: str) -> None:
        """Run rounds until cancelled; a failed round is logged and the next one follows."""
        while True:
            try:
                await self.run_round(owner)
            except StoreError as problem:
                log.warning("store.unavailable", problem=str(problem))
            except Exception as problem:
                log.error("notifier.failed", problem=str(problem), exc_info=True)
            await asyncio.sleep(self._look_seconds)

    async def run_round(self, owner: str) -> None:
        """Queue messages for new events and alerts, and send those that are due."""
        await self._ask(self._follow, _EVENTS, self._new_events)
        await self._ask(self._follow, _ALERTS, self._new_alerts)
        await self.send_due(owner)

    def _new_events(self, after: int) -> list[_Followed]:
        found = self._store.events.after(after, kinds=EVENT_KINDS, limit=_PAGE)
        return [(event.seq, event.at, partial(self._composer.for_event, event)) for event in found]

    def _new_alerts(self, after: int) -> list[_Followed]:
        found = self._store.alerts.after(after, limit=_PAGE)
        return [(number, alert.at, partial(self._composer.for_alert, number, alert)) for number, alert in found]

    def _follow(self, name: str, look: Callable[[int], list[_Followed]]) -> None:
        """Queue messages for what is new. The stored position lags a little; a message queued twice is stored once."""
        seen, begin = self._seen[name], self._position(name)
        position = settled = begin
        while page := look(position):
            old = self._store.now() - self._lookback_seconds
            for number, at, compose in page:
                if number not in seen:
                    self._queue(name, number, compose)
                    seen.add(number)
                if at < old:
                    settled = number
            position = page[-1][0]
        if settled > begin:
            self._store.cursors.advance(name, settled)
            self._positions[name] = settled
            seen -= {number for number in seen if number <= settled}

    def _position(self, name: str) -> int:
        """Where this process continues, regardless of how far other processes are."""
        if name not in self._positions:
            self._positions[name] = self._store.cursors.position(name)
        return self._positions[name]

    def _queue(self, name: str, number: int, compose: Callable[[], list[NewMessage]]) -> None:
        """An event whose message cannot be composed is logged; it must not block the others."""
        try:
            messages = compose()
        except StoreError:
            raise
        except Exception as problem:
            log.error("message.not_composed", follows=name, number=number, problem=str(problem), exc_info=True)
            return
        if messages:
            self._store.outbox.add(messages)

    async def send_due(self, owner: str) -> None:
        """Send the queued messages that are due."""
        while await self._ask(self._store.outbox.has_due):
            begun = boottime()
            messages = await self._ask(self._store.outbox.claim, owner, limit=_BATCH, seconds=self._lease_seconds)
            if not messages:
                return  # due, but claimed by another worker
            groups = _by_recipient(messages)
            await asyncio.gather(*(self._send_in_order(group, begun=begun) for group in groups))

    async def _send_in_order(self, messages: Sequence[QueuedMessage], *, begun: float) -> None:
        """Send one person's messages in order; if one must wait, the later ones wait too."""
        wait: float | None = None
        for queued in messages:
            if boottime() - begun > self._lease_seconds / 2:
                wait = wait or 0.0  # the lease may expire: the next round sends the rest
            if wait is not None:
                await self._record(self._store.outbox.postpone, queued, wait, counts=False)
                continue
            wait = await self._send(queued)

    async def _send(self, queued: QueuedMessage) -> float | None:
        """Send one message, or postpone it in quiet hours; return how long the later ones must wait, if they must."""
        recipient = await self._ask(self._recipients.find, queued.user, queued.purpose)
        if recipient is None:
            await self._record(self._store.outbox.mark_failed, queued, "this channel is no longer set up")
            return None
        message = stored_message(queued)
        if quiet := _quiet_seconds(recipient, message, now=queued.now):
            await self._record(self._store.outbox.postpone, queued, quiet, counts=False)
            return None
        delivery = await self._sender.send(recipient, message, tries=queued.tries)
        await self._record_delivery(queued, delivery)
        return delivery.retry_in

    async def _record_delivery(self, queued: QueuedMessage, delivery: Delivery) -> None:
        outbox = self._store.outbox
        if delivery.success:
            log.info("notify.sent", user=queued.user, channel=delivery.channel)
            await self._record(outbox.mark_sent, queued, delivery.channel)
        elif delivery.retry_in is not None:
            await self._record(outbox.postpone, queued, delivery.retry_in, problem=delivery.problem)
        else:
            await self._record(outbox.mark_failed, queued, delivery.problem or "unknown")

    async def _record(self, function: Callable[..., None], *args: Any, **kwargs: Any) -> None:
        try:
            await self._ask(function, *args, **kwargs)
        except LeaseLost as problem:
            log.info("message.lease_lost", problem=str(problem))

    async def _ask(self, function: Callable[..., Answer], *args: Any, **kwargs: Any) -> Answer:
        return await asyncio.to_thread(function, *args, **kwargs)


def _by_recipient(messages: Iterable[QueuedMessage]) -> list[list[QueuedMessage]]:
    def recipient(queued: QueuedMessage) -> tuple[str, str]:
        return queued.user, queued.purpose

    return [list(group) for _, group in groupby(sorted(messages, key=recipient), key=recipient)]


def _quiet_seconds(recipient: Recipient, message: Message, *, now: float) -> float:
    if message.priority is Priority.HIGH:
        return 0.0
    return quiet_seconds_left(recipient.quiet, recipient.time_zone, now=now)
