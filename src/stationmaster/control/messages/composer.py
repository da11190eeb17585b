"""Turns events and alerts into messages with their recipients."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from stationmaster.control.messages.recipients import Recipient, Recipients
from stationmaster.control.publishing import delivery_notes as notes
from stationmaster.errors import NotFound
from stationmaster.lifecycle import PARKED
from stationmaster.model import Alert, CostLine, Event, Job, Note
from stationmaster.money import MicroDollars, cost
from stationmaster.notify.base import Message, Priority
from stationmaster.notify.templates import Facts, MessageText, text_of_alert, text_of_event
from stationmaster.store.outbox import NewMessage, QueuedMessage
from stationmaster.store.store import Store
from stationmaster.watch.anomalies.registry import USUAL_REACTIONS

_SENT_FOR_THEIR_EVENT = frozenset({"stall", PARKED, *USUAL_REACTIONS})
"""Alerts whose event is already sent to the owner."""


class MessageComposer:
    def __init__(self, store: Store, recipients: Recipients, *, page_url: str | None = None) -> None:
        self._store = store
        self._recipients = recipients
        self._page_url = page_url

    def for_event(self, event: Event) -> list[NewMessage]:
        """Messages to the job's owner, and to operators who get everything; none if the event is not worth one."""
        job = self._job(event.job_id)
        text = None if job is None else text_of_event(event, job, self._facts(event, job))
        if job is None or text is None:
            return []
        recipients = [self._recipients.owner(job.spec.owner)]
        if self._recipients.operators_get_everything:
            recipients += [one for one in self._recipients.operators() if one.name != recipients[0].name]
        return list(self._addressed(f"event:{event.seq}", text, recipients, job_id=job.id, at=event.at))

    def for_alert(self, number: int, alert: Alert) -> list[NewMessage]:
        """Messages to the operators."""
        if alert.kind in _SENT_FOR_THEIR_EVENT:
            return []
        job = None if alert.job_id is None else self._job(alert.job_id)
        recipients = list(self._recipients.operators())
        text = text_of_alert(alert, job)
        return list(self._addressed(f"alert:{number}", text, recipients, job_id=alert.job_id, at=alert.at))

    def for_notice(self, cause: str, text: MessageText, *, at: float) -> list[NewMessage]:
        """Messages to the single user about something that is no event of a job."""
        return list(self._addressed(cause, text, [self._recipients.owner(None)], job_id=None, at=at))

    def _addressed(
        self, cause: str, text: MessageText, recipients: list[Recipient], *, job_id: str | None, at: float
    ) -> Iterator[NewMessage]:
        for recipient in recipients:
            message = Message(
                key=f"{self._store.installation_id}.{cause.replace(':', '.')}.{recipient.name}",
                kind=text.kind,
                text=text.text,
                at=at,
                priority=text.priority,
                job_id=job_id,
                more=text.more,
            )
            yield NewMessage(
                cause=cause,
                user=recipient.name,
                purpose=recipient.purpose,
                note=inbox_note(message),
                message=dataclasses.asdict(message),
                push=text.kind not in recipient.muted,
            )

    def _job(self, job_id: str) -> Job | None:
        try:
            return self._store.jobs.get(job_id)
        except NotFound:
            return None  # removed in the meantime

    def _facts(self, event: Event, job: Job) -> Facts:
        is_end = event.kind == "outcome"
        lines = self._store.costs.of_job(job.id) if is_end else []
        return Facts(
            cost=MicroDollars(sum(_cost_so_far(line, at=event.at) for line in lines)),
            model=job.model.address,
            published=tuple(place.link or place.address for place in notes.places(job)),
            health=self._store.analyses.health_of([job.id]).get(job.id) if is_end else None,
            link=f"{self._page_url.rstrip('/')}/jobs/{job.id}" if self._page_url else None,
        )


def stored_message(queued: QueuedMessage) -> Message:
    """A queued message as it was composed; fields of newer code are ignored."""
    known = {item.name for item in dataclasses.fields(Message)}
    values = {name: value for name, value in queued.message.items() if name in known}
    return Message(**{**values, "priority": Priority(values["priority"])})


def inbox_note(message: Message) -> Note:
    return Note(
        key=message.key,
        kind=message.kind,
        text=message.text,
        priority=message.priority.value,
        at=message.at,
        job_id=message.job_id,
    )


def _cost_so_far(line: CostLine, *, at: float) -> int:
    return line.amount if line.ended_at is not None else cost(line.rate_per_hour, max(0.0, at - line.started_at))
