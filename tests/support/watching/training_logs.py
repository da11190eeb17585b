"""The repository's own training logs and how they are to be read."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

LOGS = Path(__file__).parents[2] / "fixtures" / "logs"
NAMES = sorted(str(path.relative_to(LOGS).with_suffix("")) for path in LOGS.rglob("*.log"))
FIELDS = (
    "step",
    "total_steps",
    "step_scope",
    "epoch",
    "total_epochs",
    "loss",
    "learning_rate",
    "steps_per_second",
    "eta_seconds",
    "phase",
)


def log_bytes(name: str) -> bytes:
    return (LOGS / f"{name}.log").read_bytes()


def expected(name: str) -> dict[str, Any]:
    """The values in the log; the file omits fields that the log does not have."""
    document = json.loads((LOGS / f"{name}.json").read_text())
    told = {field: document.get(field) for field in FIELDS}
    return {**told, "errors": document.get("errors", []), "checkpoints": document.get("checkpoints", [])}


def differences(want: dict[str, Any], got: dict[str, Any]) -> list[str]:
    """The fields that were read otherwise, one line each."""
    wrong = [
        f"{field}: {got[field]!r} instead of {want[field]!r}" for field in FIELDS if not _same(want[field], got[field])
    ]
    told = [(error["kind"], error["fatal"]) for error in got["errors"]]
    if told != [(error["kind"], error["fatal"]) for error in want["errors"]]:
        wrong.append(f"errors: {got['errors']} instead of {want['errors']}")
    elif any(
        error["message_contains"] not in found["message"]
        for error, found in zip(want["errors"], got["errors"], strict=True)
    ):
        wrong.append(f"messages: {got['errors']} instead of {want['errors']}")
    if want["checkpoints"] != got["checkpoints"]:
        wrong.append(f"checkpoints: {got['checkpoints']} instead of {want['checkpoints']}")
    return wrong


def _same(want: Any, got: Any) -> bool:
    if want is None or got is None or isinstance(want, str):
        return bool(want == got)
    return math.isclose(want, got, rel_tol=1e-6, abs_tol=1e-9)
