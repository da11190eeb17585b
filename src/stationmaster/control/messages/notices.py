"""From events and alerts to letters: what is told, and to whom."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from stationmaster.control.messages.address_book import AddressBook, Recipient
from stationmaster.control.publishing import delivery_notes as notes
from stationmaster.errors import NotFound
from stationmaster.lifecycle import PARKED
from stationmaster.model import Alert, CostLine, Event, Job, Note
from stationmaster.money import MicroDollars, cost
from stationmaster.notify.base import Priority, Rendered
from stationmaster.notify.templates import Facts, MessageText, text_of_alert, text_of_event
from stationmaster.store.outbox import Letter, NewLetter
from stationmaster.store.store import Store
from stationmaster.watch.anomalies.registry import USUAL_REACTIONS

_TOLD_BY_THEIR_EVENT = frozenset({"stall", PARKED, *USUAL_REACTIONS})
"""Alerts whose event is told to the owner already."""


class Notices:
    def __init__(self, store: Store, book: AddressBook, *, page_url: str | None = None) -> None:
        self._store = store
        self._book = book
        self._page_url = page_url

    def of_event(self, event: Event) -> list[NewLetter]:
        """Letters to the job's owner, and to operators who want everything; none for what is not worth a word."""
        job = self._job(event.job_id)
        words = None if job is None else text_of_event(event, job, self._facts(event, job))
        if job is None or words is None:
            return []
        recipients = [self._book.owner(job.spec.owner)]
        if self._book.operators_get_everything:
            recipients += [one for one in self._book.operators() if one.name != recipients[0].name]
        return list(self._letters(f"event:{event.seq}", words, recipients, job_id=job.id, at=event.at))

    def of_alert(self, number: int, alert: Alert) -> list[NewLetter]:
        """Letters to the operators."""
        if alert.kind in _TOLD_BY_THEIR_EVENT:
            return []
        job = None if alert.job_id is None else self._job(alert.job_id)
        recipients = list(self._book.operators())
        words = text_of_alert(alert, job)
        return list(self._letters(f"alert:{number}", words, recipients, job_id=alert.job_id, at=alert.at))

    def _letters(
        self, cause: str, words: MessageText, recipients: list[Recipient], *, job_id: str | None, at: float
    ) -> Iterator[NewLetter]:
        for recipient in recipients:
            message = Rendered(
                key=f"{self._store.installation_id}.{cause.replace(':', '.')}.{recipient.name}",
                kind=words.kind,
                text=words.text,
                at=at,
                priority=words.priority,
                job_id=job_id,
                more=words.more,
            )
            yield NewLetter(
                cause=cause,
                user=recipient.name,
                purpose=recipient.purpose,
                note=note_of(message),
                message=dataclasses.asdict(message),
                push=words.kind not in recipient.muted,
            )

    def _job(self, job_id: str) -> Job | None:
        try:
            return self._store.jobs.get(job_id)
        except NotFound:
            return None  # removed meanwhile, and all that belongs to it

    def _facts(self, event: Event, job: Job) -> Facts:
        lines = self._store.costs.of_job(job.id) if event.kind == "outcome" else []
        return Facts(
            cost=MicroDollars(sum(_so_far(line, at=event.at) for line in lines)),
            model=job.model.address,
            model_step=job.model.step,
            published=tuple(place.link or place.address for place in notes.places(job)),
            link=f"{self._page_url.rstrip('/')}/jobs/{job.id}" if self._page_url else None,
        )


def message_of(letter: Letter) -> Rendered:
    """A letter's message as it was written; what newer code added to it is left out."""
    known = {item.name for item in dataclasses.fields(Rendered)}
    values = {name: value for name, value in letter.message.items() if name in known}
    return Rendered(**{**values, "priority": Priority(values["priority"])})


def note_of(message: Rendered) -> Note:
    return Note(
        key=message.key,
        kind=message.kind,
        text=message.text,
        priority=message.priority.value,
        at=message.at,
        job_id=message.job_id,
    )


def _so_far(line: CostLine, *, at: float) -> int:
    return line.amount if line.ended_at is not None else cost(line.rate_per_hour, max(0.0, at - line.started_at))
