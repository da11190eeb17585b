"""A typed client for Vast.ai's API. A create is never retried automatically."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stationmaster.errors import AnswerLost, ProviderBusy, ProviderFault
from stationmaster.event_log import get_logger
from stationmaster.http_answers import read_json
from stationmaster.money import MicroDollars
from stationmaster.providers.vastai.answer_limits import ListBudget
from stationmaster.providers.vastai.bounds import contract_id
from stationmaster.providers.vastai.calls import Calls
from stationmaster.providers.vastai.exchange import VastAnswer, VastRequest
from stationmaster.providers.vastai.refusals import Refusal, error_of
from stationmaster.providers.vastai.wire import (
    ChargePage,
    ChargeRow,
    InstancePage,
    InstanceRow,
    KeyRow,
    LogRequested,
    OfferRow,
    VastUser,
    read,
    read_all,
    readable,
)

log = get_logger("stationmaster.vastai")

SEARCH_CAP = 64
"""Maximum offers in one answer, even with a higher `limit`. (Reported by third parties.)"""
_PAGE = 25
_CHARGES_PAGE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RentOrder:
    """The order of a create. `bid_per_hour` is always sent for an interruptible machine: without a price the service
    silently rents on demand."""

    image: str
    disk_gb: float
    label: str
    onstart: str
    environment: Mapping[str, str] = field(default_factory=dict)
    bid_per_hour: MicroDollars | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """A rental. With a `fault` the service refused but rented anyway: it bills and must be destroyed."""

    instance_id: int
    fault: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceList:
    """All instances of the account; `complete` only if the service's own count agrees."""

    rows: tuple[InstanceRow, ...]
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """Offers; `invalid` counts those that were left out because a price or another number of theirs is impossible."""

    rows: tuple[OfferRow, ...]
    invalid: int


class VastClient:
    def __init__(self, calls: Calls, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._calls = calls
        self._sleep = sleep

    @property
    def clock_ahead_seconds(self) -> float | None:
        return self._calls.clock_ahead_seconds

    async def search(
        self, query: Mapping[str, Any], *, pages: int = 1, until_price: MicroDollars | None = None
    ) -> SearchResult:
        """The cheapest matching offers, up to `pages` times the service's maximum; the service may filter loosely.

        Pages do not wait for the rate limit, so that a search is fast; the next search waits longer instead.
        """
        found: dict[int, OfferRow] = {}
        floor: MicroDollars | None = None
        invalid = 0
        for page in range(pages):
            offers = await self._offers(query, floor=floor, continues=page > 0)
            rows = readable(OfferRow, offers)
            invalid += len(offers) - len(rows)
            if offers and not rows and not found:
                raise ProviderFault("none of Vast.ai's offers is valid: prices or other numbers are impossible")
            known = len(found)
            found.update((row.id, row) for row in rows)
            floor = max((row.dph_total for row in rows), default=MicroDollars(0))
            if len(offers) < SEARCH_CAP or len(found) == known or (until_price is not None and floor > until_price):
                break
        if invalid:
            log.warning("offers.left_out", provider="vastai", count=invalid, why="their numbers are not possible")
        return SearchResult(rows=tuple(found.values()), invalid=invalid)

    async def create(self, ask_id: int, order: RentOrder) -> Created:
        """Rent. NoCapacity, ProviderBusy, AccessRefused, ProviderError: nothing was rented. AnswerLost: unknown."""
        body = {
            "client_id": "me",
            "image": order.image,
            "disk": order.disk_gb,
            "label": order.label,
            "onstart": order.onstart,
            "env": dict(order.environment),
            "price": None if order.bid_per_hour is None else order.bid_per_hour / 1_000_000,
            "runtype": "ssh_direc ssh_proxy",  # the official client's spelling
            "cancel_unavail": True,  # refuse, instead of leaving a stopped machine
        }
        answer = await self._calls.ask(
            VastRequest(
                endpoint="create",
                method="PUT",
                path=f"/api/v0/asks/{ask_id}/",
                doing="rent the machine",
                body=body,
                repeatable=False,
                waits_when_limited=False,  # the caller looks for the label before each try
                changes=True,
            )
        )
        return _created(answer)

    async def instances(self) -> InstanceList:
        """Read all pages. Raises ProviderFault for an answer that is not a list: it never counts as empty."""
        pages = await read_instance_pages(self._calls)
        found = [row for page in pages for row in read_all(InstanceRow, page.instances, what="a machine")]
        rows = {row.id: row for row in found}
        complete = {page.total_instances for page in pages} == {len(rows)} and pages[-1].next_token is None
        return InstanceList(rows=tuple(rows.values()), complete=complete)

    async def instance(self, instance_id: int) -> InstanceRow | None:
        """One instance; None only if the service answers that it does not exist."""
        answer = await self._calls.ask(
            VastRequest(
                endpoint="read",
                method="GET",
                path=f"/api/v0/instances/{instance_id}/",
                doing=f"describe machine {instance_id}",
                query={"owner": "me"},
            )
        )
        if answer.refusal is not None and answer.refusal.is_gone:
            return None
        document = answer.document()
        if not isinstance(document, dict) or "instances" not in document:
            raise ProviderFault(f"Vast.ai's answer does not contain machine {instance_id}")
        if document["instances"] is None:
            return None
        row = read(InstanceRow, document["instances"], what=f"machine {instance_id}")
        if row.id != instance_id:
            raise ProviderFault(f"Vast.ai was asked for machine {instance_id} and returned {row.id}")
        return row

    async def destroy(self, instance_id: int) -> None:
        """Destroy the instance; does nothing if it no longer exists."""
        answer = await self._calls.ask(
            VastRequest(
                endpoint="destroy",
                method="DELETE",
                path=f"/api/v0/instances/{instance_id}/",
                doing=f"destroy machine {instance_id}",
                body={},
                changes=True,
            )
        )
        if answer.refusal is not None and not answer.refusal.is_gone:
            raise answer.problem()

    async def label(self, instance_id: int, text: str) -> None:
        (await self._manage(instance_id, {"label": text}, doing=f"label machine {instance_id}")).document()

    async def stop(self, instance_id: int) -> None:
        (await self._manage(instance_id, {"state": "stopped"}, doing=f"stop machine {instance_id}")).document()

    async def start(self, instance_id: int) -> bool:
        """True if it starts. False: the GPU is taken and the start is only queued; it may bill at any time until
        `stop` cancels it."""
        answer = await self._manage(
            instance_id, {"state": "running"}, doing=f"start machine {instance_id}", repeatable=False
        )
        # Its HTTP status is not confirmed, so the text decides.
        if answer.refusal is not None and "state change queued" in answer.refusal.message.lower():
            return False
        answer.document()
        return True

    async def log(
        self, instance_id: int, *, tail: int = 1000, attempts: int = 30, interval_seconds: float = 0.3
    ) -> str:
        """The container's log. The service writes it to a URL that answers once it is ready.

        The timeout is for waiting until it is ready; its download has limits of its own.
        """
        answer = await self._calls.ask(
            VastRequest(
                endpoint="logs",
                method="PUT",
                path=f"/api/v0/instances/request_logs/{instance_id}/",
                doing=f"return the log of machine {instance_id}",
                body={"tail": str(tail)},
            )
        )
        url = read(LogRequested, answer.document(), what="the URL of a log").result_url
        began = self._calls.stopwatch()
        for _ in range(attempts):
            content = await self._calls.fetch(url)
            if content is not None:
                return content.decode("utf-8", "replace")
            if self._calls.stopwatch() - began >= self._calls.timeout_seconds:
                break
            await self._sleep(interval_seconds)
        raise ProviderBusy(f"Vast.ai did not return the log of machine {instance_id} in time")

    async def account_keys(self) -> tuple[str, ...]:
        answer = await self._calls.ask(
            VastRequest(endpoint="keys", method="GET", path="/api/v0/ssh/", doing="list the account's SSH keys")
        )
        if answer.refusal is not None and answer.refusal.status == 404 and not answer.refusal.is_key_refused:
            return ()  # the service's answer for no keys
        document = answer.document()
        if not isinstance(document, list):
            raise ProviderFault("Vast.ai's list of SSH keys is unreadable")
        rows = read_all(KeyRow, document, what="an SSH key")
        return tuple(text for row in rows if (text := row.key or row.public_key))

    async def add_account_key(self, public_key: str) -> None:
        await self._add_key("/api/v0/ssh/", public_key, doing="add the SSH key to the account")

    async def attach_key(self, instance_id: int, public_key: str) -> None:
        path = f"/api/v0/instances/{instance_id}/ssh/"
        await self._add_key(path, public_key, doing=f"attach the SSH key to machine {instance_id}")

    async def user(self) -> VastUser:
        """The account of the key. The answer may contain keys: only declared fields are read."""
        answer = await self._calls.ask(
            VastRequest(endpoint="user", method="GET", path="/api/v0/users/current/", doing="identify the account")
        )
        return read(VastUser, answer.document(), what="an account")

    async def charges(self, *, since: float, until: float) -> tuple[ChargeRow, ...]:
        """Charges for instances on the days of the span. Raises ProviderFault unless every row arrived."""
        filters = {"day": {"gte": int(since), "lte": int(until) + 1}, "type": {"in": ["instance"]}}
        query = {"select_filters": json.dumps(filters), "limit": str(_CHARGES_PAGE), "format": "table"}
        rows: list[ChargeRow] = []
        budget = ListBudget(began=self._calls.stopwatch())
        while True:
            answer = await self._calls.ask(
                VastRequest(
                    endpoint="charges", method="GET", path="/api/v0/charges/", doing="list its charges", query=query
                )
            )
            page = read(ChargePage, answer.document(), what="a list of charges")
            rows += read_all(ChargeRow, page.results, what="a charge")
            budget.add(rows=len(page.results), read_bytes=len(answer.body))
            if page.next_token is None or not page.results:
                break
            if budget.is_spent(self._calls.stopwatch()) or page.next_token == query.get("after_token"):
                raise ProviderFault(f"Vast.ai's list of charges has no end: {len(rows)} on {budget.pages} pages")
            query = {**query, "after_token": page.next_token}
        if page.total is not None and len(rows) < page.total:
            raise ProviderFault(f"Vast.ai reports {page.total} charges but lists {len(rows)}")
        return tuple(rows)

    async def _offers(self, query: Mapping[str, Any], *, floor: MicroDollars | None, continues: bool) -> list[Any]:
        body = {**query, "order": [["dph_total", "asc"]], "limit": SEARCH_CAP}
        if floor is not None:
            body["dph_total"] = {"gte": (floor - 1) / 1_000_000}  # with as many digits as the service uses
        request = VastRequest(
            endpoint="search",
            method="POST",
            path="/api/v0/bundles/",
            doing="search its offers",
            body=body,
            continues=continues,
        )
        document = (await self._calls.ask(request)).document()
        offers = document.get("offers") if isinstance(document, dict) else None
        if not isinstance(offers, list):
            raise ProviderFault("Vast.ai's answer contains no list of offers")
        return offers

    async def _manage(
        self, instance_id: int, change: Mapping[str, Any], *, doing: str, repeatable: bool = True
    ) -> VastAnswer:
        return await self._calls.ask(
            VastRequest(
                endpoint="manage",
                method="PUT",
                path=f"/api/v0/instances/{instance_id}/",
                doing=doing,
                body=change,
                repeatable=repeatable,
                changes=True,
            )
        )

    async def _add_key(self, path: str, public_key: str, *, doing: str) -> None:
        answer = await self._calls.ask(
            VastRequest(
                endpoint="keys",
                method="POST",
                path=path,
                doing=doing,
                body={"ssh_key": public_key},
                repeatable=False,
                changes=True,
            )
        )
        # The refusal of an existing key is not confirmed; no other refusal contains this word.
        if answer.refusal is not None and "already" in f"{answer.refusal.code} {answer.refusal.message}".lower():
            return
        answer.document()


async def read_instance_pages(calls: Calls, *, at_once: bool = False) -> list[InstancePage]:
    """Read every page of the account's instances; with `at_once` further pages do not wait for the rate limit.

    Stops at a page token that was seen before, and when its budget is spent; the last page then has a `next_token`.
    """
    pages: list[InstancePage] = []
    tokens: set[str] = set()
    budget = ListBudget(began=calls.stopwatch())
    query = {"limit": str(_PAGE), "order_by": '[{"col": "id", "dir": "asc"}]'}
    while True:
        request = VastRequest(
            endpoint="list",
            method="GET",
            path="/api/v1/instances/",
            doing="list its machines",
            query=query,
            continues=at_once and bool(tokens),
        )
        answer = await calls.ask(request)
        page = read(InstancePage, answer.document(), what="a list of machines")
        pages.append(page)
        budget.add(rows=len(page.instances), read_bytes=len(answer.body))
        if page.next_token is None or page.next_token in tokens or budget.is_spent(calls.stopwatch()):
            return pages
        tokens.add(page.next_token)
        query = {**query, "after_token": page.next_token}


def _created(answer: VastAnswer) -> Created:
    refusal = answer.refusal
    if refusal is None:
        return Created(instance_id=_new_contract(answer))
    if refusal.new_contract is not None:
        return Created(instance_id=refusal.new_contract, fault=refusal.message or refusal.code)
    if _is_clean(refusal):
        raise error_of(refusal, doing="rent the machine")
    raise AnswerLost(f"Vast.ai may or may not have rented the machine: HTTP {refusal.status} {refusal.message}")


def _is_clean(refusal: Refusal) -> bool:
    """Whether certainly nothing was rented; a 408 may come from a proxy in between."""
    return refusal.status in (200, 429) or (400 <= refusal.status < 500 and refusal.status != 408)


def _new_contract(answer: VastAnswer) -> int:
    try:
        document = read_json(answer.body)
    except ValueError:
        document = None
    found = contract_id(document.get("new_contract")) if isinstance(document, dict) else None
    if found is None:
        raise AnswerLost("Vast.ai's answer to the order is unreadable: it may have rented the machine")
    return found
