"""Receives Stationmaster's webhooks: verifies the signature, ignores repetitions, prints each message as one line.

Standard library only. WEBHOOK_SECRET_FILE names a file with the secret that Stationmaster signs with; PORT is the port
(default 9000; 0 picks a free one). Put TLS in front of it where others can reach it.
"""

import base64
import binascii
import hashlib
import hmac
import json
import os
import pathlib
import sys
import time
from collections import OrderedDict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

LARGEST_BYTES = 1 << 20
OLDEST_SECONDS = 300  # an older message may be a replay
MOST_REMEMBERED = 10_000


def secret_bytes(text: str) -> bytes:
    """A `whsec_…` secret is base64, any other is used as it is."""
    return base64.b64decode(text.removeprefix("whsec_"), validate=True) if text.startswith("whsec_") else text.encode()


def is_genuine(secret: bytes, headers: dict[str, str], body: bytes, *, now: float) -> bool:
    """Whether the body is signed with the secret, and was signed in the last minutes."""
    message_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not message_id or not timestamp.isdecimal() or abs(now - int(timestamp)) > OLDEST_SECONDS:
        return False
    signed = hmac.new(secret, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    for each in headers.get("webhook-signature", "").split():
        version, _, given = each.partition(",")
        try:
            if version == "v1" and hmac.compare_digest(base64.b64decode(given), signed):
                return True
        except binascii.Error:
            continue
    return False


def handle(message: dict[str, object]) -> None:
    """Replace this by what you want: open a ticket, switch on a lamp."""
    line = {name: message.get(name) for name in ("kind", "priority", "job", "title", "text")}
    print(json.dumps(line), flush=True)


class Receiver(BaseHTTPRequestHandler):
    secret = b""
    seen: ClassVar[OrderedDict[str, None]] = OrderedDict()

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LARGEST_BYTES:
            return self._answer(413)
        body = self.rfile.read(int(length))
        headers = {name.lower(): value for name, value in self.headers.items()}
        if not is_genuine(self.secret, headers, body, now=time.time()):
            return self._answer(401)
        if headers["webhook-id"] not in self.seen:  # a repeated message was handled already
            handle(json.loads(body))
            self.seen[headers["webhook-id"]] = None
            if len(self.seen) > MOST_REMEMBERED:
                self.seen.popitem(last=False)
        return self._answer(204)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """No line per request."""


def main() -> None:
    text = pathlib.Path(os.environ["WEBHOOK_SECRET_FILE"]).read_text(encoding="utf-8").strip()
    if not text:
        sys.exit("the secret is empty")
    Receiver.secret = secret_bytes(text)
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "9000"))), Receiver)
    print(f"listens at http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
