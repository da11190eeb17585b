"""Upload tickets on both engines."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from stationmaster.errors import TicketRefused
from stationmaster.store.store import Store
from stationmaster.store.tickets import NewTicket, TicketState


def new_ticket(number: int = 1, **changes: Any) -> NewTicket:
    values = {
        "id": f"ticket-{number}",
        "job_id": "job",
        "attempt": 1,
        "path": "output/model.safetensors",
        "size": 10,
        "sha256": "ab" * 32,
        "key": "jobs/job/model",
        "quarantine": f"quarantine/job/{number}",
    }
    return NewTicket(**{**values, **changes})


def test_a_ticket_is_issued_once(store: Store) -> None:
    ticket = store.tickets.open(new_ticket(part_sha256s=("cd" * 32, "ef" * 32)))
    assert ticket.state is TicketState.OPEN
    issued = store.tickets.issue(ticket.id, seconds=900, upload="upload-7")
    assert (issued.state, issued.upload, issued.part_sha256s) == (
        TicketState.ISSUED, "upload-7", ("cd" * 32, "ef" * 32),
    )  # fmt: skip
    with pytest.raises(TicketRefused):
        store.tickets.issue(ticket.id, seconds=900)
    assert store.tickets.get(ticket.id) == issued


def test_of_many_that_ask_at_once_one_gets_it(store: Store) -> None:
    ticket = store.tickets.open(new_ticket())

    def ask(_: int) -> bool:
        try:
            store.tickets.issue(ticket.id, seconds=900)
        except TicketRefused:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(ask, range(8))) == 1


def test_a_file_has_one_live_ticket_and_may_get_another_after_it(store: Store) -> None:
    first = store.tickets.open(new_ticket(1))
    assert store.tickets.open(new_ticket(2)) == first
    other = store.tickets.open(new_ticket(3, path="output/other"))
    assert other.id == "ticket-3"
    store.tickets.close(first.id, TicketState.VOID, problem="it broke off")
    assert store.tickets.open(new_ticket(4)).id == "ticket-4"
    assert [ticket.id for ticket in store.tickets.of_job("job")] == ["ticket-1", "ticket-3", "ticket-4"]


def test_a_closed_ticket_stays_closed(store: Store) -> None:
    ticket = store.tickets.open(new_ticket())
    store.tickets.issue(ticket.id, seconds=900)
    store.tickets.close(ticket.id, TicketState.DONE)
    store.tickets.close(ticket.id, TicketState.VOID, problem="too late")
    closed = store.tickets.get(ticket.id)
    assert (closed.state, closed.problem) == (TicketState.DONE, None)
    with pytest.raises(TicketRefused):
        store.tickets.issue(ticket.id, seconds=900)


def test_a_ticket_that_nobody_wrote_is_refused(store: Store) -> None:
    with pytest.raises(TicketRefused):
        store.tickets.get("made-up")
    with pytest.raises(TicketRefused):
        store.tickets.issue("made-up", seconds=900)


def test_a_ticket_that_was_not_used_in_time_is_refused(store: Store) -> None:
    ticket = store.tickets.open(new_ticket(), seconds=0)
    with pytest.raises(TicketRefused):
        store.tickets.issue(ticket.id, seconds=900)
    assert store.tickets.get(ticket.id).state is TicketState.OPEN
