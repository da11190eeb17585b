"""E-mail over SMTP, in a thread because the standard library's client blocks."""

from __future__ import annotations

import asyncio
import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate
from pathlib import Path
from typing import Literal

from stationmaster.errors import NotifyBusy, NotifyRefused
from stationmaster.notify.base import Message
from stationmaster.settings.addresses import is_loopback_host

_TEMPORARY = range(400, 500)


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    host: str
    port: int
    sender: str
    user: str | None = None
    password: str | None = None
    security: Literal["starttls", "tls", "none"] = "starttls"
    ca_file: Path | None = None  # None: the authorities that this computer trusts
    timeout_seconds: float = 15.0


class Email:
    def __init__(self, server: MailServer) -> None:
        self._server = server

    async def send(self, recipient: str, message: Message) -> None:
        """The Message-ID is the same in every try, so most mail programs show the message once."""
        with _mail_errors():
            await asyncio.to_thread(self._deliver, mail_of(message, self._server.sender, recipient))

    async def check(self, recipient: str | None) -> str:
        with _mail_errors():
            await asyncio.to_thread(self._log_in)
        return f"{self._server.host}:{self._server.port} accepts " + ("the login" if self._server.user else "mail")

    def _deliver(self, mail: EmailMessage) -> None:
        with self._connected() as connection:
            self._prepare(connection)
            connection.send_message(mail)

    def _log_in(self) -> None:
        with self._connected() as connection:
            self._prepare(connection)
            connection.noop()

    def _prepare(self, connection: smtplib.SMTP) -> None:
        """Encrypt the connection and log in, as the settings say."""
        server = self._server
        if server.security == "starttls":
            connection.starttls(context=self._tls())
        if server.user is not None and server.password is not None:
            if server.security == "none" and not is_loopback_host(server.host):
                raise NotifyRefused("the password of the mail server is only sent with starttls or tls")
            connection.login(server.user, server.password)

    def _connected(self) -> smtplib.SMTP:
        server = self._server
        if server.security == "tls":
            return smtplib.SMTP_SSL(server.host, server.port, timeout=server.timeout_seconds, context=self._tls())
        return smtplib.SMTP(server.host, server.port, timeout=server.timeout_seconds)

    def _tls(self) -> ssl.SSLContext:
        """Checks the certificate and its host name; smtplib's own default checks neither."""
        try:
            return ssl.create_default_context(cafile=self._server.ca_file)
        except OSError as problem:  # an SSLError, too
            raise NotifyRefused(f"notify.mail.ca_file cannot be used: {problem.strerror or problem}") from None


@contextmanager
def _mail_errors() -> Iterator[None]:
    try:
        yield
    except ssl.SSLCertVerificationError as problem:
        raise NotifyRefused(f"the mail server's certificate is not valid: {problem.verify_message}") from None
    except smtplib.SMTPNotSupportedError:
        raise NotifyRefused("the mail server offers no STARTTLS, or no way to log in") from None
    except (smtplib.SMTPRecipientsRefused, smtplib.SMTPSenderRefused, ValueError) as problem:
        raise NotifyRefused(f"the mail server refused the address: {type(problem).__name__}") from None
    except smtplib.SMTPResponseException as problem:
        if problem.smtp_code in _TEMPORARY:
            raise NotifyBusy(f"the mail server could not accept the message: {problem.smtp_code}") from None
        raise NotifyRefused(f"the mail server refused the message: {problem.smtp_code}") from None
    except (OSError, smtplib.SMTPException) as problem:
        raise NotifyBusy(f"the mail server cannot be reached: {type(problem).__name__}") from None


def mail_of(message: Message, sender: str, recipient: str) -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["To"] = sender, recipient
    mail["Subject"] = message.title
    mail["Date"] = formatdate(message.at)
    mail["Message-ID"] = f"<{message.key}@stationmaster>"
    mail.set_content(message.text)
    return mail
