"""One HTTP call to Vast.ai: rate limit, timeout, retries, and what a missing answer means."""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import httpx

from stationmaster.errors import AnswerLost, ConfigInvalid, ProviderBusy, ProviderError, ProviderFault
from stationmaster.event_log import get_logger
from stationmaster.http_answers import AnswerLimit, AnswerTooLarge, ask, told_at
from stationmaster.providers.base import Limiter, Pause
from stationmaster.providers.vastai.answer_limits import LOG_BYTES, MOST_BYTES
from stationmaster.providers.vastai.exchange import VastAnswer, VastRequest
from stationmaster.providers.vastai.refusals import read_refusal
from stationmaster.providers.vastai.retries import Retries
from stationmaster.trusted_certificates import trusted_certificates

log = get_logger("stationmaster.vastai")

INTERVALS: Mapping[str, float] = {
    "search": 6.0,  # ten per minute and address
    "create": 4.5,
    "list": 1.0,
    "read": 2.0,
    "manage": 1.0,
    "destroy": 3.0,
    "logs": 1.0,  # not documented
    "keys": 1.0,
    "charges": 1.0,
    "user": 0.0,  # not documented
}
"""Seconds between two calls of one kind by one account, as documented."""

_UNREACHABLE_HINT = "check the network and VASTAI_API_BASE_URL, then run `stationmaster doctor`"
_CONNECT_SHARE = 0.8  # of the time for the whole answer
_LEAST_SECONDS = 2.0  # minimum timeout of a try
_NEVER_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.UnsupportedProtocol,
    httpx.LocalProtocolError,
    httpx.ProxyError,
)


class Calls:
    """Calls the service with one account's key, which is only ever in one header.

    Every call opens its own connection: on a reused one that the service has dropped, the result of a create would be
    unknown, and calls are seconds apart anyway.
    """

    def __init__(
        self,
        *,
        base_url: str,
        api_key: str,
        account: str,
        limiter: Limiter,
        intervals: Mapping[str, float] = INTERVALS,
        retries: Retries | None = None,
        timeout_seconds: float = 60.0,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Pause = asyncio.sleep,
        pause: Pause | None = None,
        draw: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.time,
        stopwatch: Callable[[], float] = time.monotonic,
    ) -> None:
        """`pause` waits for a rate limit, which the user should see; `sleep` waits after a failure."""
        self.origin = _origin(base_url)
        self.timeout_seconds = timeout_seconds
        #: How far this computer's clock was ahead of the service's at its last answer, to a second or so.
        self.clock_ahead_seconds: float | None = None
        self._api_key = api_key
        self._account = account
        self._limiter = limiter
        self._intervals = {**INTERVALS, **intervals}
        self._retries = retries or Retries()
        self._transport = transport
        self._sleep = sleep
        self._pause = pause or sleep
        self._draw = draw
        self._clock = clock
        self.stopwatch = stopwatch

    async def ask(self, request: VastRequest) -> VastAnswer:
        """The service's answer, also a refusal. Raises ProviderBusy or AnswerLost if there is none."""
        failures = refusals = 0
        failed_seconds = limited_seconds = 0.0
        await self._wait_for_turn(request)
        while True:
            tried_at = self.stopwatch()
            outcome = await self._try(request, spent_seconds=failed_seconds)
            if isinstance(outcome, VastAnswer) and outcome.is_limited:
                refusals += 1
                wait = self._limited_wait(outcome, refusals, waited_seconds=limited_seconds)
                if wait is None:
                    return outcome
                await self._pause(wait)
                await self._wait_for_turn(request)
                limited_seconds += wait
                continue
            if isinstance(outcome, VastAnswer) and not outcome.may_pass:
                return outcome
            failures += 1
            spent = failed_seconds + self.stopwatch() - tried_at
            wait = self._wait(request, failures, _asked_seconds(outcome), spent_seconds=spent)
            if wait is None:
                return _answer_or_raise(outcome)
            await self._sleep(wait)
            await self._wait_for_turn(request)
            failed_seconds += self.stopwatch() - tried_at

    async def fetch(self, url: str) -> bytes | None:
        """Download a URL that the service named, without the key; None until it is available."""
        if not self._may_be_read(url):
            raise ProviderFault(f"Vast.ai named a URL that is not safe to read: {url[:200]}")
        limit = AnswerLimit(most_bytes=LOG_BYTES, seconds=self.timeout_seconds)
        try:
            async with self._http(url, seconds=limit.seconds) as http:
                answer = await ask(http, "GET", url, limit=limit)
        except httpx.InvalidURL:
            raise ProviderFault(f"Vast.ai named an invalid URL: {url[:200]}") from None
        except httpx.HTTPError as problem:
            raise _no_answer(problem, doing="hand out the log", changes=False) from problem
        return answer.content if answer.status_code == 200 else None

    def _may_be_read(self, url: str) -> bool:
        """Whether a URL that the service named is encrypted, or the service's own."""
        try:
            address = urlsplit(url)
        except ValueError:
            return False
        return address.scheme == "https" or f"{address.scheme}://{address.netloc}" == self.origin

    async def _wait_for_turn(self, request: VastRequest) -> None:
        interval = self._intervals[request.endpoint]
        if interval > 0:
            await self._limiter.wait_for_turn(
                self._account,
                request.endpoint,
                interval_seconds=interval,
                continues=request.continues,
                pause=self._pause,
            )

    async def _try(self, request: VastRequest, *, spent_seconds: float) -> VastAnswer | ProviderError:
        """One try; reports it to the limiter, with the pause that the service asks for."""
        outcome: VastAnswer | ProviderError
        called = {"account": self._account, "call": request.endpoint, "method": request.method, "path": request.path}
        try:
            with log.timed("provider.called", provider="vastai", **called):
                outcome = await self._once(request, spent_seconds=spent_seconds)
        except (ProviderBusy, AnswerLost) as silence:
            outcome = silence
        interval = self._intervals[request.endpoint]
        if interval > 0:
            waits = isinstance(outcome, VastAnswer) and outcome.is_limited and not outcome.is_quota
            asked_seconds = min(_asked_seconds(outcome) or interval, self._retries.limited_seconds)
            await self._limiter.note_answer(
                self._account,
                request.endpoint,
                interval_seconds=interval,
                pause_seconds=asked_seconds if waits else 0.0,
            )
        return outcome

    def _limited_wait(self, answer: VastAnswer, refusals: int, *, waited_seconds: float) -> float | None:
        if answer.is_quota or not answer.request.waits_when_limited:
            return None
        return self._retries.limited_wait(
            refusals,
            _asked_seconds(answer),
            draw=self._draw(),
            waited_seconds=waited_seconds,
            turn=self._intervals[answer.request.endpoint],
        )

    def _wait(
        self, request: VastRequest, failures: int, asked_seconds: float | None, *, spent_seconds: float
    ) -> float | None:
        if not request.repeatable:
            return None
        turn = self._intervals[request.endpoint]
        return self._retries.wait(failures, asked_seconds, draw=self._draw(), spent_seconds=spent_seconds, turn=turn)

    async def _once(self, request: VastRequest, *, spent_seconds: float) -> VastAnswer:
        url = f"{self.origin}{request.path}"
        left_seconds = max(_LEAST_SECONDS, self._retries.within_seconds - spent_seconds)
        limit = AnswerLimit(most_bytes=MOST_BYTES[request.endpoint], seconds=min(self.timeout_seconds, left_seconds))
        try:
            async with self._http(url, seconds=limit.seconds) as http:
                answer = await ask(
                    http,
                    request.method,
                    url,
                    limit=limit,
                    params=dict(request.query or {}),
                    json=request.body if request.method != "GET" else None,
                    headers={"Authorization": f"Bearer {self._api_key}", "Accept": "application/json"},
                )
        except httpx.HTTPError as problem:
            raise _no_answer(problem, doing=request.doing, changes=request.changes) from problem
        told = told_at(answer.headers)
        self.clock_ahead_seconds = None if told is None else self._clock() - told
        refusal = read_refusal(
            answer.status_code, answer.headers, answer.content, now=self._clock(), secret=self._api_key
        )
        return VastAnswer(request=request, body=answer.content, refusal=refusal)

    def _http(self, url: str, *, seconds: float) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            transport=self._transport,
            verify=_trusted(urlsplit(url).scheme),
            # A connection that fails does so before the whole time is over: then nothing was sent.
            timeout=httpx.Timeout(seconds, connect=_CONNECT_SHARE * seconds),
            follow_redirects=False,  # a redirect could send the key elsewhere
            headers={"User-Agent": "stationmaster"},
        )


def _trusted(scheme: str) -> ssl.SSLContext:
    """The certificates for HTTPS. Plain HTTP needs none: its context has no certificates, so it accepts no server."""
    return trusted_certificates() if scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _asked_seconds(outcome: VastAnswer | ProviderError) -> float | None:
    """The pause that the service asks for, if any."""
    return outcome.refusal.retry_after_seconds if isinstance(outcome, VastAnswer) and outcome.refusal else None


def _answer_or_raise(outcome: VastAnswer | ProviderError) -> VastAnswer:
    if isinstance(outcome, ProviderError):
        raise outcome
    return outcome


def _no_answer(problem: httpx.HTTPError, *, doing: str, changes: bool) -> ProviderError:
    why = str(problem) or type(problem).__name__
    if changes and not isinstance(problem, _NEVER_SENT):
        return AnswerLost(f"Vast.ai may or may not {doing}: {why}")
    if isinstance(problem, AnswerTooLarge | httpx.DecodingError):
        return ProviderBusy(f"Vast.ai did not {doing}: {why}")
    return ProviderBusy(f"Vast.ai did not {doing}: it cannot be reached ({why})", hint=_UNREACHABLE_HINT)


def _origin(base_url: str) -> str:
    """`https://console.vast.ai` of `https://console.vast.ai/api/v0`: the version belongs to each call.

    >>> _origin("https://console.vast.ai/api/v0/"), _origin("http://127.0.0.1:8080")
    ('https://console.vast.ai', 'http://127.0.0.1:8080')
    """
    parts = urlsplit(base_url.strip())
    path = parts.path.rstrip("/").removesuffix("/v0").removesuffix("/v1").removesuffix("/api")
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.username or parts.query:
        raise ConfigInvalid(
            "vastai.api_base_url is not a valid URL", hint="write https://console.vast.ai/api/v0, without a key"
        )
    return f"{parts.scheme}://{parts.netloc}{path}"
