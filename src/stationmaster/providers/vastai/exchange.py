"""A request to Vast.ai and its answer: a document or a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stationmaster.errors import AnswerLost, ProviderError, ProviderFault
from stationmaster.http_answers import read_json
from stationmaster.providers.vastai.refusals import Refusal, error_of


@dataclass(frozen=True, slots=True, kw_only=True)
class VastRequest:
    """`endpoint` is the key of the rate limit; `doing` is used in the error message."""

    endpoint: str
    method: str
    path: str
    doing: str
    query: Mapping[str, str] | None = None
    body: Mapping[str, Any] | None = None
    repeatable: bool = True  # after a failure with an unknown result
    waits_when_limited: bool = True  # after a rate limit, when it certainly had no effect
    changes: bool = False  # whether it may have had an effect when no answer comes
    continues: bool = False  # the next page of the previous call: does not wait for the rate limit


@dataclass(frozen=True, slots=True, kw_only=True)
class VastAnswer:
    request: VastRequest
    body: bytes
    refusal: Refusal | None

    @property
    def is_limited(self) -> bool:
        """Whether the service refused because of a rate limit."""
        return self.refusal is not None and self.refusal.is_busy

    @property
    def is_quota(self) -> bool:
        """Whether that limit lasts until the end of the day."""
        return self.refusal is not None and self.refusal.is_quota

    @property
    def may_pass(self) -> bool:
        """Whether the service failed, so that a retry may succeed."""
        return self.refusal is not None and self.refusal.status >= 500

    def document(self) -> Any:
        """The JSON of a successful answer. Raises the error for a refusal or an unreadable answer."""
        if self.refusal is not None:
            raise self.problem()
        try:
            return read_json(self.body)
        except ValueError:
            raise ProviderFault(f"Vast.ai did not {self.request.doing}: its answer is not valid JSON") from None

    def problem(self) -> ProviderError:
        assert self.refusal is not None
        if self.request.changes and self.refusal.status >= 500 and not self.refusal.is_busy:
            return AnswerLost(f"Vast.ai may or may not {self.request.doing}: HTTP {self.refusal.status}")
        return error_of(self.refusal, doing=self.request.doing)
