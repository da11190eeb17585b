"""A mail server on this computer that stores messages, and refuses those that a test selects; with TLS if asked."""

from __future__ import annotations

import email
import email.policy
import socketserver
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from email.message import EmailMessage
from typing import Any


class SmtpServer:
    """Use as a context manager. `answers` are given instead of the usual ones, by the command's first word.

    With `tls` a connection is encrypted from its start, with `starttls` once the client asks for it. `logins` counts
    the passwords that arrived.
    """

    def __init__(
        self,
        answers: Mapping[str, str] | None = None,
        *,
        tls: ssl.SSLContext | None = None,
        starttls: ssl.SSLContext | None = None,
    ) -> None:
        self.answers = answers or {}
        self.tls, self.starttls = tls, starttls
        self.logins = 0
        self.mails: list[EmailMessage] = []

    def __enter__(self) -> SmtpServer:
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with suppress(ssl.SSLError, ConnectionError):  # a client that refuses the certificate
                    self._talk()
                self.connection.close()  # the one with TLS, which the server does not know

            def _talk(self) -> None:
                if outer.tls is not None:
                    self._encrypt(outer.tls)
                self._say("220 test")
                while line := self.rfile.readline().decode().strip():
                    word = line.split()[0].upper()
                    if word in outer.answers:
                        self._say(outer.answers[word])
                    elif word == "EHLO":
                        self._say(
                            "250-test\r\n250-AUTH PLAIN" + ("\r\n250 STARTTLS" if outer.starttls else "\r\n250 ok")
                        )
                    elif word == "STARTTLS" and outer.starttls is not None:
                        self._say("220 go on")
                        self._encrypt(outer.starttls)
                    elif word == "AUTH":
                        outer.logins += 1
                        self._say("235 welcome")
                    elif word == "DATA":
                        self._take()
                    elif word == "QUIT":
                        return self._say("221 bye")
                    else:
                        self._say("250 ok")
                return None

            def _take(self) -> None:
                self._say("354 go on")
                lines: list[bytes] = []
                while (line := self.rfile.readline()) != b".\r\n":
                    lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
                parsed = email.message_from_bytes(b"".join(lines), policy=email.policy.default)
                assert isinstance(parsed, EmailMessage)
                outer.mails.append(parsed)
                self._say("250 taken")

            def _encrypt(self, context: ssl.SSLContext) -> None:
                encrypted: Any = context.wrap_socket(self.connection, server_side=True)
                self.connection = encrypted
                self.rfile, self.wfile = encrypted.makefile("rb"), encrypted.makefile("wb", buffering=0)

            def _say(self, text: str) -> None:
                self.wfile.write(f"{text}\r\n".encode())

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])
