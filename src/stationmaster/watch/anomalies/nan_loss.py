"""Loss or gradients are no numbers any more: nothing that follows is worth its rent."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stationmaster.watch.anomalies.base import Anomaly, Confidence, LossPoint, Vitals

_ZEROS_IN_A_ROW = 3


def find_nan_loss(vitals: Vitals) -> Anomaly | None:
    """nan or inf, or the silent kind: a loss of exactly 0 with nan gradients, or several in a row."""
    if not vitals.losses:
        return None
    last = vitals.losses[-1]
    if not math.isfinite(last.loss):
        return _found(f"loss is {last.loss} at step {last.step}", Confidence.HIGH)
    if last.gradient_norm is not None and not math.isfinite(last.gradient_norm):
        shown = f"gradient norm is {last.gradient_norm} at step {last.step}, loss reads {last.loss:g}"
        return _found(shown, Confidence.HIGH if last.loss == 0 else Confidence.MEDIUM)
    recent = vitals.losses[-_ZEROS_IN_A_ROW:]
    if len(recent) == _ZEROS_IN_A_ROW and all(point.loss == 0 for point in recent) and _was_above_zero(vitals.losses):
        return _found(f"loss is exactly 0 since step {recent[0].step}", Confidence.MEDIUM)
    return None


def _was_above_zero(losses: Sequence[LossPoint]) -> bool:
    return any(point.loss > 0 for point in losses)


def _found(evidence: str, confidence: Confidence) -> Anomaly:
    return Anomaly(kind="nan_loss", evidence=evidence, confidence=confidence)
