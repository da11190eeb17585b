"""Tells people what happened: follows events and alerts, writes letters, sends them.

An event becomes exactly one letter per person and purpose, whoever follows it and however often. A letter is sent at
least once: between the service's answer and our note of it a worker may die, and then another sends it again when the
lease is over. Services that know keys (webhooks, Discord for some minutes) still deliver it once; Telegram, Slack and
e-mail know none, so a message may arrive there twice after a crash at that very moment, and never not at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import Any, TypeVar

from stationmaster.control.flow.clock import boottime
from stationmaster.control.messages.address_book import AddressBook, Recipient
from stationmaster.control.messages.courier import Courier
from stationmaster.control.messages.notices import Notices, message_of
from stationmaster.control.messages.quiet_hours import seconds_until_loud
from stationmaster.errors import LeaseLost, StoreError
from stationmaster.event_log import get_logger
from stationmaster.model import Delivery
from stationmaster.notify.base import Priority, Rendered
from stationmaster.notify.templates import EVENT_KINDS
from stationmaster.store.outbox import Letter, NewLetter
from stationmaster.store.store import Store

log = get_logger("stationmaster.notify")

_EVENTS, _ALERTS = "events", "alerts"
_PAGE = 500
_BATCH = 50

Answer = TypeVar("Answer")
Told = tuple[int, float, Callable[[], list[NewLetter]]]
"""(number, when, what it comes to)"""


class Notifier:
    """A loop of the worker. Several may run on one store."""

    def __init__(
        self,
        store: Store,
        book: AddressBook,
        courier: Courier,
        notices: Notices,
        *,
        look_seconds: float = 1.0,
        lookback_seconds: float = 60.0,
        lease_seconds: float = 120.0,
    ) -> None:
        self._store = store
        self._book = book
        self._courier = courier
        self._notices = notices
        self._look_seconds = look_seconds
        self._lookback_seconds = lookback_seconds  # numbers are not in the order of commits
        self._lease_seconds = lease_seconds
        self._seen: dict[str, set[int]] = {_EVENTS: set(), _ALERTS: set()}
        self._positions: dict[str, int] = {}

    async def run(self, owner: str) -> None:
        """Tell people for ever; trouble with one round is told and the next one tried."""
        while True:
            try:
                await self.tell(owner)
            except StoreError as problem:
                log.warning("store.unavailable", problem=str(problem))
            except Exception as problem:
                log.error("notifier.tripped", problem=str(problem), exc_info=True)
            await asyncio.sleep(self._look_seconds)

    async def tell(self, owner: str) -> None:
        """One round: new events and alerts become letters, due letters are sent."""
        await self._ask(self._follow, _EVENTS, self._new_events)
        await self._ask(self._follow, _ALERTS, self._new_alerts)
        await self._send_due(owner)

    def _new_events(self, after: int) -> list[Told]:
        found = self._store.events.after(after, kinds=EVENT_KINDS, limit=_PAGE)
        return [(event.seq, event.at, partial(self._notices.of_event, event)) for event in found]

    def _new_alerts(self, after: int) -> list[Told]:
        found = self._store.alerts.after(after, limit=_PAGE)
        return [(number, alert.at, partial(self._notices.of_alert, number, alert)) for number, alert in found]

    def _follow(self, name: str, look: Callable[[int], list[Told]]) -> None:
        """Post what is new. The kept position stays behind a little; what was posted twice is there once."""
        seen, begin = self._seen[name], self._position(name)
        position = settled = begin
        while page := look(position):
            old = self._store.now() - self._lookback_seconds
            for number, at, letters in page:
                if number not in seen:
                    self._post(name, number, letters)
                    seen.add(number)
                if at < old:
                    settled = number
            position = page[-1][0]
        if settled > begin:
            self._store.cursors.advance(name, settled)
            self._positions[name] = settled
            seen -= {number for number in seen if number <= settled}

    def _position(self, name: str) -> int:
        """Where this process goes on; how far others got does not matter to it."""
        if name not in self._positions:
            self._positions[name] = self._store.cursors.position(name)
        return self._positions[name]

    def _post(self, name: str, number: int, letters: Callable[[], list[NewLetter]]) -> None:
        """One event that cannot be told must not keep the others from being told."""
        try:
            written = letters()
        except StoreError:
            raise
        except Exception as problem:
            log.error("notice.tripped", follows=name, number=number, problem=str(problem), exc_info=True)
            return
        if written:
            self._store.outbox.post(written)

    async def _send_due(self, owner: str) -> None:
        while await self._ask(self._store.outbox.has_due):
            begun = boottime()
            letters = await self._ask(self._store.outbox.claim, owner, limit=_BATCH, seconds=self._lease_seconds)
            if not letters:
                return  # due, but in somebody else's hands
            groups = _by_recipient(letters)
            await asyncio.gather(*(self._send_in_order(group, begun=begun) for group in groups))

    async def _send_in_order(self, letters: Sequence[Letter], *, begun: float) -> None:
        """One person's letters, one after the other; when one must wait, those behind it wait too."""
        wait: float | None = None
        for letter in letters:
            if boottime() - begun > self._lease_seconds / 2:
                wait = wait or 0.0  # the lease would not last: the next round takes the rest
            if wait is not None:
                await self._note(self._store.outbox.put_off, letter, wait, counts=False)
                continue
            wait = await self._send(letter)

    async def _send(self, letter: Letter) -> float | None:
        """Send one letter, or hold it back in quiet hours; how long those behind it have to wait, if they do."""
        recipient = await self._ask(self._book.find, letter.user, letter.purpose)
        if recipient is None:
            await self._note(self._store.outbox.failed, letter, "this way is no longer set up")
            return None
        message = message_of(letter)
        if hold := _seconds_to_hold(recipient, message, now=letter.now):
            await self._note(self._store.outbox.put_off, letter, hold, counts=False)
            return None
        delivery = await self._courier.deliver(recipient, message, tries=letter.tries)
        await self._settle(letter, delivery)
        return delivery.retry_in

    async def _settle(self, letter: Letter, delivery: Delivery) -> None:
        outbox = self._store.outbox
        if delivery.success:
            log.info("notify.sent", user=letter.user, channel=delivery.channel)
            await self._note(outbox.sent, letter, delivery.channel)
        elif delivery.retry_in is not None:
            await self._note(outbox.put_off, letter, delivery.retry_in, problem=delivery.problem)
        else:
            await self._note(outbox.failed, letter, delivery.problem or "unknown")

    async def _note(self, function: Callable[..., None], *args: Any, **kwargs: Any) -> None:
        try:
            await self._ask(function, *args, **kwargs)
        except LeaseLost as problem:
            log.info("letter.lost", problem=str(problem))

    async def _ask(self, function: Callable[..., Answer], *args: Any, **kwargs: Any) -> Answer:
        return await asyncio.to_thread(function, *args, **kwargs)


def _by_recipient(letters: Iterable[Letter]) -> list[list[Letter]]:
    def recipient(letter: Letter) -> tuple[str, str]:
        return letter.user, letter.purpose

    return [list(group) for _, group in groupby(sorted(letters, key=recipient), key=recipient)]


def _seconds_to_hold(recipient: Recipient, message: Rendered, *, now: float) -> float:
    if message.priority is Priority.HIGH:
        return 0.0
    return seconds_until_loud(recipient.quiet, recipient.time_zone, now=now)
