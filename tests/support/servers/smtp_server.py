"""A mail server on this computer that stores messages, and refuses those that a test selects."""

from __future__ import annotations

import email
import email.policy
import socketserver
import threading
from email.message import EmailMessage


class SmtpServer:
    """Use as a context manager. `answers` are given instead of the usual ones, by the command's first word."""

    def __init__(self, **answers: str) -> None:
        self.answers = answers
        self.mails: list[EmailMessage] = []

    def __enter__(self) -> SmtpServer:
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self._say("220 test")
                while line := self.rfile.readline().decode().strip():
                    word = line.split()[0].upper()
                    if word in outer.answers:
                        self._say(outer.answers[word])
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
