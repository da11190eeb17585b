"""A password and a message go only to the mail server that a trusted certificate names."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Literal

import pytest

from stationmaster.config import load_settings
from stationmaster.errors import ConfigInvalid, NotifyRefused
from stationmaster.notify.base import Message
from stationmaster.notify.email import Email, MailServer
from tests.support.asynchronous_tests import asynchronous
from tests.support.servers.certificates import make_authority, server_context
from tests.support.servers.smtp_server import SmtpServer

MESSAGE = Message(key="ab12cd34.event.7.ann", kind="terminated", text="Training ended", at=1700000000.0)
Encryption = Literal["starttls", "tls"]
BOTH: list[Encryption] = ["tls", "starttls"]


def channel(
    port: int, security: Literal["starttls", "tls", "none"], *, host: str = "127.0.0.1", ca_file: Path | None = None
) -> Email:
    server = MailServer(
        host=host, port=port, sender="sm@example.com", user="ann", password="p", security=security, ca_file=ca_file
    )
    return Email(server)


def encrypted_server(security: Encryption, context: ssl.SSLContext) -> SmtpServer:
    return SmtpServer(tls=context) if security == "tls" else SmtpServer(starttls=context)


@pytest.mark.parametrize("security", BOTH)
@asynchronous
async def test_a_mail_server_with_a_self_signed_certificate_gets_neither_password_nor_message(
    tmp_path: Path, security: Encryption
) -> None:
    with (
        encrypted_server(security, server_context(tmp_path)) as server,
        pytest.raises(NotifyRefused, match=r"certificate is not valid: self-signed"),
    ):
        await channel(server.port, security).send("ann@example.com", MESSAGE)
    assert (server.logins, server.mails) == (0, [])


@pytest.mark.parametrize("security", BOTH)
@asynchronous
async def test_a_mail_server_with_a_certificate_of_the_chosen_authority_gets_the_message(
    tmp_path: Path, security: Encryption
) -> None:
    authority = make_authority()
    ca_file = authority.write(tmp_path / "ca.pem")
    with encrypted_server(security, server_context(tmp_path, signer=authority)) as server:
        await channel(server.port, security, ca_file=ca_file).send("ann@example.com", MESSAGE)
    assert (server.logins, len(server.mails)) == (1, 1)


@pytest.mark.parametrize("security", BOTH)
@asynchronous
async def test_a_certificate_for_another_host_is_refused(tmp_path: Path, security: Encryption) -> None:
    authority = make_authority()
    ca_file = authority.write(tmp_path / "ca.pem")
    context = server_context(tmp_path, signer=authority, address="127.0.0.9")
    with (
        encrypted_server(security, context) as server,
        pytest.raises(NotifyRefused, match="certificate is not valid: IP address mismatch"),
    ):
        await channel(server.port, security, ca_file=ca_file).send("ann@example.com", MESSAGE)
    assert (server.logins, server.mails) == (0, [])


@asynchronous
async def test_a_server_that_hides_its_starttls_gets_no_password() -> None:
    with SmtpServer() as server, pytest.raises(NotifyRefused, match="no STARTTLS"):
        await channel(server.port, "starttls").send("ann@example.com", MESSAGE)
    assert (server.logins, server.mails) == (0, [])


@asynchronous
async def test_an_authority_that_cannot_be_read_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("not a certificate")
    for file in ("ca.pem", "missing.pem"):
        with SmtpServer(tls=server_context(tmp_path)) as server, pytest.raises(NotifyRefused, match="ca_file cannot"):
            await channel(server.port, "tls", ca_file=tmp_path / file).send("ann@example.com", MESSAGE)


@asynchronous
async def test_without_encryption_a_password_goes_to_this_computer_only() -> None:
    with SmtpServer() as server:
        await channel(server.port, "none").send("ann@example.com", MESSAGE)
        assert server.logins == 1
        with pytest.raises(NotifyRefused, match="only sent with starttls or tls"):  # 0.0.0.0 reaches the same server
            await channel(server.port, "none", host="0.0.0.0").send("ann@example.com", MESSAGE)
    assert server.logins == 1


def test_settings_that_would_send_a_mail_password_unencrypted_are_refused(tmp_path: Path) -> None:
    mail = {"HOST": "mail.example.com", "SECURITY": "none", "USER": "ann", "PASSWORD": "planted"}
    environ = {f"STATIONMASTER_NOTIFY__MAIL__{name}": value for name, value in mail.items()}
    with pytest.raises(ConfigInvalid, match=r"notify\.mail: password would be sent unencrypted") as refused:
        load_settings({"STATIONMASTER_HOME": str(tmp_path), **environ}, folder=tmp_path)
    assert "planted" not in str(refused.value)
    at_home = {**environ, "STATIONMASTER_NOTIFY__MAIL__HOST": "localhost"}
    assert load_settings({"STATIONMASTER_HOME": str(tmp_path), **at_home}, folder=tmp_path).notify.mail.host
