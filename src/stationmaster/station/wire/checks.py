"""Checks of an installation."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from stationmaster.station.checks import CheckResult
from stationmaster.station.wire.document import Document


class CheckDocument(Document):
    """One check of the server."""

    check: str = Field(examples=["store"])
    ok: bool
    detail: str
    hint: str = ""
    """What to do if it is not ok."""

    @classmethod
    def of(cls, result: CheckResult) -> Self:
        return cls(check=result.check, ok=result.ok, detail=result.detail, hint=result.hint)

    def value(self) -> CheckResult:
        return CheckResult(check=self.check, ok=self.ok, detail=self.detail, hint=self.hint)
