"""Any answer of a provider ends in a result or in an error of ours, and no machine is lost because of a bad field."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.errors import AnswerLost, ProviderError
from stationmaster.model import Charge, Machine, Requirements
from stationmaster.money import LARGEST_AMOUNT
from stationmaster.providers.vastai.bounds import MOST_PER_HOUR
from stationmaster.providers.vastai.client import RentOrder
from stationmaster.providers.vastai.provider import VastProvider
from stationmaster.providers.vastai.retries import Retries
from stationmaster.providers.vastai.telemetry_rows import parse_telemetry
from tests.support.vast.vast_client_bench import Scripted, instance_row, offer_row, scripted

WANT = Requirements(gpus=1, vram_gib=24.0, disk_gib=40.0, hours=4.0, traffic_gib=20.0)
ORDER = RentOrder(image="image", disk_gb=8.0, label="sm-a-b-1", onstart="true")
NASTY: st.SearchStrategy[Any] = st.sampled_from(
    [
        None, True, False, 0, -1, -3.5, 1e308, 5e-324, 2**63, -(2**63), int("9" * 300), int("9" * 4000), math.nan,
        math.inf, -math.inf, "", "0", "-1", "1e999", "NaN", "Infinity", "\ud800", "\0", "x" * 100_000, "\x1b]0;hi\a",
        [], {}, [[]], [None], {"": None}, "٣", "1_000", " 7 ", "0x10", "https://[", "http://127.0.0.1:1/x",
    ]
)  # fmt: skip
SCALARS = NASTY | st.integers() | st.floats() | st.text(max_size=20)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
CHARGE = {"start": 1.0, "end": 2.0, "source": "instance-7", "amount": 1.5, "items": [{"type": "gpu", "amount": 1.5}]}
DOCUMENTS: dict[str, Any] = {
    "offers": {"offers": [offer_row(id=1), offer_row(id=2)]},
    "listing": {"instances": [instance_row()], "total_instances": 1, "next_token": None},
    "instance": {"instances": instance_row()},
    "created": {"success": True, "new_contract": 7835610},
    "log": {"success": True, "result_url": "http://vast.test/a.log"},
    "charges": {"results": [CHARGE], "total": 1, "next_token": None},
    "user": {"id": 1, "credit": 5.0},
    "keys": [{"id": 1, "key": "ssh-ed25519 AAAA"}],
}
ASKED: dict[str, Callable[[VastProvider, Scripted], Awaitable[Any]]] = {
    "offers": lambda provider, _: provider.ranking(WANT),
    "listing": lambda provider, _: provider.listing(),
    "instance": lambda provider, _: provider.describe("7835610"),
    "created": lambda _, script: script.client(retries=Retries(attempts=1)).create(7, ORDER),
    "log": lambda provider, _: provider.log("7835610"),
    "charges": lambda provider, _: provider.charges(since=0.0, until=9.0),
    "user": lambda provider, _: provider.credit(),
    "keys": lambda provider, _: provider.account_keys(),
}
STATUSES = st.sampled_from([200, 200, 200, 201, 204, 301, 400, 401, 404, 408, 410, 429, 500, 503])
HEADERS = st.dictionaries(
    st.sampled_from(["retry-after", "x-ratelimit-reset", "content-type"]),
    st.sampled_from(["", "-1", "inf", "nan", "9" * 5000, "1e999", "soon", "0"]),
    max_size=2,
)


@st.composite
def mutated(draw: st.DrawFn, document: Any) -> Any:
    """The document with some of its parts replaced, removed or repeated, at any depth."""
    if isinstance(document, dict):
        changed: dict[str, Any] = {}
        for key, value in document.items():
            fate = draw(st.integers(0, 9))
            if fate == 0:
                continue
            changed[key] = draw(JSON) if fate == 1 else draw(mutated(value)) if fate <= 4 else value
        return changed
    if isinstance(document, list):
        return [draw(mutated(one)) for one in document] * draw(st.integers(0, 3))
    return draw(SCALARS) if draw(st.integers(0, 2)) == 0 else document


def encoded(document: Any) -> bytes:
    return json.dumps(document).encode()


def outcome(kind: str, body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Any:
    """What the provider makes of the answer, or the error; anything but an error of our tree fails the test."""
    answer = httpx.Response(status, content=body, headers=headers)
    before = [httpx.Response(200, content=encoded(DOCUMENTS["user"]))] if kind == "listing" else []
    script = scripted(*before, *[answer] * 40)
    try:
        found = asyncio.run(_asked(kind, script))
    except ProviderError as problem:
        found = problem
    assert not isinstance(found, ProviderError) or len(str(found)) < 1000
    return found


async def _asked(kind: str, script: Scripted) -> Any:
    return await ASKED[kind](script.provider(log_attempts=2), script)


def require_possible(found: Any) -> None:
    """What gets in can be stored, shown and calculated with."""
    for machine in found if isinstance(found, list | tuple) else [found]:
        if isinstance(machine, Machine):
            assert 0 <= machine.price_per_hour <= MOST_PER_HOUR
            assert math.isfinite(machine.created_at)
            assert int(machine.provider_id) > 0
            assert len(machine.message or "") <= 4100
            assert "\0" not in f"{machine.label}{machine.message}{machine.gpu}"
            f"{machine.label}{machine.message}{machine.gpu}".encode()
        if isinstance(machine, Charge):
            assert 0 <= machine.amount <= LARGEST_AMOUNT
            machine.kind.encode()


@given(st.sampled_from(sorted(DOCUMENTS)), st.binary(max_size=200) | JSON.map(encoded), STATUSES, HEADERS)
def test_arbitrary_answers_end_in_a_result_or_in_an_error_of_ours(
    kind: str, body: bytes, status: int, headers: dict[str, str]
) -> None:
    found = outcome(kind, body, status, headers)
    if kind == "created" and not isinstance(found, ProviderError):
        assert found.instance_id > 0


@given(st.data())
def test_changed_answers_end_in_a_result_or_in_an_error_of_ours(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(DOCUMENTS)))
    found = outcome(kind, encoded(data.draw(mutated(DOCUMENTS[kind]))))
    require_possible(getattr(found, "machines", found))
    for ranked in getattr(found, "chosen", ()):
        assert ranked.offer.price_per_hour > 0
        assert math.isfinite(ranked.hours)


@given(st.dictionaries(st.sampled_from(sorted(instance_row().keys() - {"id"})), JSON))
def test_no_bad_field_hides_a_machine(odd: dict[str, Any]) -> None:
    row = instance_row(**odd)
    listing = outcome("listing", encoded({"instances": [row], "total_instances": 1, "next_token": None}))
    assert [machine.provider_id for machine in listing.machines] == ["7835610"]
    require_possible(listing.machines)
    require_possible(outcome("instance", encoded({"instances": row})))
    (seen,) = parse_telemetry([row]).rows
    assert seen.id == 7835610
    assert seen.memory_percent is None or 0 <= seen.memory_percent <= 100


@given(st.integers(1, 990), NASTY)
def test_a_machine_whose_id_is_no_id_is_named_as_skipped_in_monitoring(depth: int, other: Any) -> None:
    deep: Any = other
    for _ in range(depth):
        deep = [deep]
    seen = parse_telemetry([{"id": deep}, instance_row()])
    assert [row.id for row in seen.rows] == [7835610]
    assert seen.unreadable[0].startswith("instance ? skipped")


@given(JSON)
def test_an_order_whose_answer_makes_no_sense_may_have_rented(document: Any) -> None:
    """Unknown is not no: the label is looked for before anything else is rented."""
    found = outcome("created", encoded({"success": True, "new_contract": document}))
    assert isinstance(found, AnswerLost) or found.instance_id > 0


@given(st.integers(1, 200_000), st.sampled_from([b"[", b'{"a":', b'[{"b":[']), st.sampled_from(sorted(DOCUMENTS)))
def test_deep_nesting_never_raises_anything_else(depth: int, opening: bytes, kind: str) -> None:
    closing = b"".join(b"}" if sign == ord("{") else b"]" for sign in reversed(opening) if sign in b"[{")
    outcome(kind, opening * depth + b"1" + closing * depth)
