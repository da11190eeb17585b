"""E-mail arrives as typed; a server that refuses is told from one that only has no time."""

from __future__ import annotations

import pytest

from stationmaster.errors import NotifyBusy, NotifyError, NotifyRefused
from stationmaster.notify.base import Message
from stationmaster.notify.email import Email, MailServer
from tests.support.asynchronous_tests import asynchronous
from tests.support.servers.smtp_server import SmtpServer

TEXT = "🛑 Training Terminated\n\nJob: <b>*_\n.\nReason: Stall detected, grace period expired"
MESSAGE = Message(key="ab12cd34.event.7.ann", kind="terminated", text=TEXT, at=1700000000.0)


def channel(port: int) -> Email:
    return Email(MailServer(host="127.0.0.1", port=port, sender="sm@example.com", security="none"))


@asynchronous
async def test_a_mail_arrives_as_typed_and_keeps_its_id() -> None:
    with SmtpServer() as server:
        for _ in range(2):
            await channel(server.port).send("ann@example.com", MESSAGE)
    first, second = server.mails
    assert first["To"] == "ann@example.com"
    assert first["Subject"] == "🛑 Training Terminated"
    assert first.get_content().strip().splitlines() == TEXT.splitlines()
    assert first["Message-ID"] == second["Message-ID"] == "<ab12cd34.event.7.ann@stationmaster>"


@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        ({"RCPT": "550 no such person"}, NotifyRefused),
        ({"MAIL": "553 not from you"}, NotifyRefused),
        ({"DATA": "451 try later"}, NotifyBusy),
        ({"DATA": "554 no"}, NotifyRefused),
    ],
)
@asynchronous
async def test_a_refusal_is_told_from_a_delay(answers: dict[str, str], kind: type[NotifyError]) -> None:
    with SmtpServer(answers) as server, pytest.raises(kind):
        await channel(server.port).send("ann@example.com", MESSAGE)
    assert server.mails == []


@asynchronous
async def test_a_server_that_is_not_there_may_come_back() -> None:
    with SmtpServer() as server:
        port = server.port
    with pytest.raises(NotifyBusy):
        await channel(port).send("ann@example.com", MESSAGE)


@asynchronous
async def test_an_address_cannot_add_headers() -> None:
    with SmtpServer() as server, pytest.raises(NotifyRefused):
        await channel(server.port).send("ann@example.com\nBcc: eve@example.com", MESSAGE)
    assert server.mails == []
