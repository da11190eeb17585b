"""E-mail over SMTP, in a thread because the standard library's client blocks."""

from __future__ import annotations

import asyncio
import smtplib
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate
from typing import Literal

from stationmaster.errors import NotifyBusy, NotifyRefused
from stationmaster.notify.base import Message

_TEMPORARY = range(400, 500)


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    host: str
    port: int
    sender: str
    user: str | None = None
    password: str | None = None
    security: Literal["starttls", "tls", "none"] = "starttls"
    timeout_seconds: float = 15.0


class Email:
    def __init__(self, server: MailServer) -> None:
        self._server = server

    async def send(self, recipient: str, message: Message) -> None:
        """The Message-ID is the same in every try, so most mail programs show the message once."""
        try:
            await asyncio.to_thread(self._deliver, mail_of(message, self._server.sender, recipient))
        except (smtplib.SMTPRecipientsRefused, smtplib.SMTPSenderRefused, ValueError) as problem:
            raise NotifyRefused(f"the mail server refused the address: {type(problem).__name__}") from None
        except smtplib.SMTPResponseException as problem:
            if problem.smtp_code in _TEMPORARY:
                raise NotifyBusy(f"the mail server could not accept the message: {problem.smtp_code}") from None
            raise NotifyRefused(f"the mail server refused the message: {problem.smtp_code}") from None
        except (OSError, smtplib.SMTPException) as problem:
            raise NotifyBusy(f"the mail server cannot be reached: {type(problem).__name__}") from None

    def _deliver(self, mail: EmailMessage) -> None:
        server = self._server
        connect: Callable[..., smtplib.SMTP] = smtplib.SMTP_SSL if server.security == "tls" else smtplib.SMTP
        with connect(server.host, server.port, timeout=server.timeout_seconds) as connection:
            if server.security == "starttls":
                connection.starttls(context=ssl.create_default_context())
            if server.user is not None and server.password is not None:
                connection.login(server.user, server.password)
            connection.send_message(mail)


def mail_of(message: Message, sender: str, recipient: str) -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["To"] = sender, recipient
    mail["Subject"] = message.title
    mail["Date"] = formatdate(message.at)
    mail["Message-ID"] = f"<{message.key}@stationmaster>"
    mail.set_content(message.text)
    return mail
