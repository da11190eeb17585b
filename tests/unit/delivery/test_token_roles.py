"""Which tokens of the Hub can only read, by the Hub's own word; what is not known counts as writing."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from stationmaster.delivery.token_roles import TokenRoles, only_reads
from stationmaster.errors import DeliveryBusy, DeliveryRefused


def fine_grained(*permissions: str, everywhere: tuple[str, ...] = ()) -> dict[str, Any]:
    scope = {"entity": {"type": "user", "name": "anna"}, "permissions": list(permissions)}
    return {"role": "fineGrained", "fineGrained": {"global": list(everywhere), "scoped": [scope]}}


@pytest.mark.parametrize(
    ("access_token", "reads"),
    [
        ({"role": "read"}, True),
        ({"role": "write"}, False),
        ({"role": "admin"}, False),
        ({}, False),
        ({"role": "fineGrained"}, False),
        (fine_grained("repo.content.read", "repo.access.read"), True),
        (fine_grained(), True),
        (fine_grained("repo.content.read", "repo.write"), False),
        (fine_grained("inference.serverless.write"), False),
        (fine_grained("repo.content.read", "something.new"), False),
        (fine_grained("repo.content.read", everywhere=("discussion.write",)), False),
    ],
)
def test_a_token_reads_only_if_nothing_else_is_granted(access_token: dict[str, Any], reads: bool) -> None:
    assert only_reads(access_token) is reads


def roles(*answers: httpx.Response) -> TokenRoles:
    left = list(answers)
    return TokenRoles(url="https://hub", transport=httpx.MockTransport(lambda _request: left.pop(0)))


def test_the_hub_is_asked_once_for_each_token() -> None:
    told = [httpx.Response(200, json={"auth": {"accessToken": {"role": role}}}) for role in ("read", "write")]
    asked = roles(*told)
    assert asyncio.run(asked.only_reads("hf_reader"))
    assert asyncio.run(asked.only_reads("hf_reader"))
    assert not asyncio.run(asked.only_reads("hf_writer"))


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (httpx.Response(503), DeliveryBusy),
        (httpx.Response(429, headers={"Retry-After": "9"}), DeliveryBusy),
        (httpx.Response(200, json={"name": "anna"}), DeliveryBusy),
        (httpx.Response(200, text="a portal's page"), DeliveryBusy),
        (httpx.Response(401, json={"error": "Invalid"}), DeliveryRefused),
    ],
)
def test_without_an_answer_nobody_knows(answer: httpx.Response, error: type[Exception]) -> None:
    again = httpx.Response(200, json={"auth": {"accessToken": {"role": "read"}}})
    asked = roles(answer, again)
    with pytest.raises(error) as raised:
        asyncio.run(asked.only_reads("hf_reader"))
    assert "hf_reader" not in str(raised.value)
    assert asyncio.run(asked.only_reads("hf_reader")), "what is not known is not remembered"
