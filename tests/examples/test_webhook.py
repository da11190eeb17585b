"""examples/webhook gets real notifications, and refuses what is not signed, old or altered."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from stationmaster.notify.webhook import signature
from tests.support.commands.example_runs import EXAMPLES, Person

EXAMPLE = EXAMPLES / "webhook"
KEY = os.urandom(32)


@pytest.fixture(scope="module")
def receiver(person: Person) -> Iterator[subprocess.Popen[str]]:
    secret = person.folder / "webhook-secret"
    secret.write_text(f"whsec_{base64.b64encode(KEY).decode()}")
    environ = {**person.environ, "WEBHOOK_SECRET_FILE": str(secret), "PORT": "0"}
    command = [sys.executable, str(EXAMPLE / "receiver.py")]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as running:
        yield running
        running.terminate()


@pytest.fixture(scope="module")
def url(receiver: subprocess.Popen[str]) -> str:
    assert receiver.stdout is not None
    return receiver.stdout.readline().split()[-1]


def test_a_real_notification_is_verified_and_printed(person: Person, receiver: subprocess.Popen[str], url: str) -> None:
    sent = person.home.run(
        "notify",
        "test",
        "--operators",
        STATIONMASTER_NOTIFY__OPERATORS__WEBHOOK_URL=url,
        STATIONMASTER_NOTIFY__OPERATORS__WEBHOOK_SECRET_FILE=str(person.folder / "webhook-secret"),
    )
    assert sent.code == 0, sent.out + sent.err
    assert receiver.stdout is not None
    message = json.loads(receiver.stdout.readline())
    assert message["text"]
    assert set(message) == {"kind", "priority", "job", "title", "text"}


def test_what_another_signed_is_refused(url: str) -> None:
    body, at = b'{"id": "m"}', 1_000_000_000
    forged = {"webhook-id": "m", "webhook-timestamp": str(at), "webhook-signature": signature(b"no", "m", at, body)}
    for headers in ({}, forged, {**forged, "webhook-signature": "v1,###"}):
        assert httpx.post(url, content=body, headers=headers, verify=False).status_code == 401


def _receiver_module() -> Any:
    spec = importlib.util.spec_from_file_location("receiver", EXAMPLE / "receiver.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_only_a_fresh_and_unaltered_message_is_genuine(tmp_path: Path) -> None:
    is_genuine = _receiver_module().is_genuine
    body, at = b'{"id": "m"}', 1_700_000_000
    headers = {"webhook-id": "m", "webhook-timestamp": str(at), "webhook-signature": signature(KEY, "m", at, body)}
    assert is_genuine(KEY, headers, body, now=at + 10)
    assert not is_genuine(KEY, headers, body, now=at + 1000)
    assert not is_genuine(KEY, headers, body + b" ", now=at)
    assert not is_genuine(KEY, {**headers, "webhook-id": "n"}, body, now=at)
