"""A request to Vast.ai, and the answer that came: what it holds, or what its refusal means."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stationmaster.errors import AnswerLost, ProviderError, ProviderFault
from stationmaster.providers.vastai.refusals import Refusal, error_of


@dataclass(frozen=True, slots=True, kw_only=True)
class VastRequest:
    """`endpoint` is what rate limits are counted by, `doing` what a person reads when it fails."""

    endpoint: str
    method: str
    path: str
    doing: str
    query: Mapping[str, str] | None = None
    body: Mapping[str, Any] | None = None
    repeatable: bool = True  # after a failure that leaves open whether it was carried out
    waits_when_limited: bool = True  # after a rate limit, which says that it was not carried out
    changes: bool = False  # whether the service may have done something when no answer comes
    continues: bool = False  # the next page of the call before it, which need not wait for its turn


@dataclass(frozen=True, slots=True, kw_only=True)
class VastAnswer:
    request: VastRequest
    body: bytes
    refusal: Refusal | None

    @property
    def is_limited(self) -> bool:
        """Whether the service did nothing because it is asked too often."""
        return self.refusal is not None and self.refusal.is_busy

    @property
    def is_quota(self) -> bool:
        """Whether that lasts until the day is over."""
        return self.refusal is not None and self.refusal.is_quota

    @property
    def may_pass(self) -> bool:
        """Whether the service failed, and the same request may well succeed in a moment."""
        return self.refusal is not None and self.refusal.status >= 500

    def document(self) -> Any:
        """The JSON of an answer that says yes. Raises what a refusal or anything else means."""
        if self.refusal is not None:
            raise self.problem()
        try:
            return json.loads(self.body)
        except ValueError:
            raise ProviderFault(f"Vast.ai did not {self.request.doing}: its answer is not JSON") from None

    def problem(self) -> ProviderError:
        assert self.refusal is not None
        if self.request.changes and self.refusal.status >= 500 and not self.refusal.is_busy:
            return AnswerLost(f"Vast.ai may or may not {self.request.doing}: HTTP {self.refusal.status}")
        return error_of(self.refusal, doing=self.request.doing)
