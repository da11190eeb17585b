"""Checks of an installation."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from stationmaster.station.checks import CheckLevel, CheckResult
from stationmaster.station.wire.document import Document


class CheckDocument(Document):
    """One check of the server."""

    check: str = Field(examples=["store"])
    """What was checked."""
    ok: bool
    """False only if the check failed: a warning is ok."""
    detail: str
    """What was found."""
    hint: str = ""
    """What to do if it is not ok."""
    level: CheckLevel = Field(examples=["warn"])
    """`ok`, `warn` (works, but not as it could) or `fail`."""

    @model_validator(mode="before")
    @classmethod
    def _level_of_older_servers(cls, data: Any) -> Any:
        if isinstance(data, dict) and "level" not in data:
            return {**data, "level": "ok" if data.get("ok") else "fail"}
        return data

    @classmethod
    def of(cls, result: CheckResult) -> Self:
        return cls(check=result.check, ok=result.ok, detail=result.detail, hint=result.hint, level=result.level)

    def value(self) -> CheckResult:
        return CheckResult(check=self.check, level=self.level, detail=self.detail, hint=self.hint)
