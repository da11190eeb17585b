"""What the loss shows: nan, divergence, a learning rate that does nothing, overfitting."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from statistics import median

from stationmaster.analysis.facts.run_facts import RunFacts
from stationmaster.analysis.levers import Lever
from stationmaster.analysis.report import Confidence, Evidence, Severity
from stationmaster.analysis.rules.base import Finding, Group, find, number_of, value_of

_TOO_LOW = 1e-5
_GOOD_RATE = 1e-4
_LEAST_FALL = 0.10
_HALF_PRECISION = ("fp16", "float16", "half")
_ADAPTIVE = re.compile(r"prodigy|adafactor|d-?adapt|automagic", re.IGNORECASE)
_ADAM = re.compile(r"adam", re.IGNORECASE)
_VALIDATION = re.compile(
    r"^(?:val|valid|validation|eval|test)[_/.-]?(?:.*[_/.-])?loss$|^loss[_/.-]?(?:val|valid|eval)", re.IGNORECASE
)
_LEAST_VALIDATIONS = 6
_OVERFIT_RISE = 1.15


def learning_rules(facts: RunFacts) -> Iterator[Finding]:
    """Yield what spoilt the result, or kept the model from learning."""
    found = list(_nan(facts)) if facts.has_nan else [_diverged(facts)]
    yield from (finding for finding in (*found, _rate_too_low(facts), _overfit(facts)) if finding is not None)


def _nan(facts: RunFacts) -> Iterator[Finding | None]:
    rose = facts.losses.rose_before_nan() if facts.losses is not None else None
    dtype = str(value_of(facts, Lever.DTYPE) or "").casefold()
    at = facts.losses.nan_at if facts.losses is not None else None
    evidence = (
        Evidence(what="first step without a loss", value=None if at is None else at.step),
        Evidence(
            what="loss before it, times its usual height",
            value=None if rose is None else round(rose[0], 1),
            threshold=2,
        ),
        Evidence(
            what="gradient norm before it, times its usual height",
            value=None if rose is None else round(rose[1], 1),
            threshold=10,
        ),
    )
    if rose is None and dtype in _HALF_PRECISION:
        better = "no" if facts.gpu_lacks_bf16 and facts.framework == "kohya" else "bf16"
        yield find(
            facts,
            rule="nan_half_precision",
            severity=Severity.CRITICAL,
            lever=Lever.DTYPE,
            value=better,
            title="The loss became nan out of ordinary values, in fp16",
            action=f"Train in {better} instead of fp16: its range is that of 32 bit.",
            impact="The run keeps learning to the end; what follows a nan is worthless.",
            group=Group.SPOILT_THE_RESULT,
            evidence=evidence,
            basis="loss and gradients were ordinary before the nan, so a value left fp16's range",
            confidence=Confidence.HIGH,
        )
        if value_of(facts, Lever.HALF_VAE) is False:
            yield find(
                facts,
                rule="nan_half_precision_vae",
                severity=Severity.INFO,
                lever=Lever.HALF_VAE,
                value=True,
                title="Also possible: keep the VAE in 32 bit",
                action="Set no_half_vae: SDXL's VAE gives nan in fp16.",
                impact="Latents are free of nan.",
                group=Group.OTHER,
                evidence=evidence,
                basis="known of SDXL's VAE",
                confidence=Confidence.MEDIUM,
            )
        return
    yield _lower_rate(
        facts,
        rule="nan_learning_rate",
        title="The loss became nan after it had risen: the learning rate is too high"
        if rose is not None
        else "The loss became nan",
        evidence=evidence,
        confidence=Confidence.HIGH if rose is not None else Confidence.LOW,
    )


def _diverged(facts: RunFacts) -> Finding | None:
    ratio = facts.divergence
    if ratio is None:
        return None
    return _lower_rate(
        facts,
        rule="diverged",
        title=f"The loss rose to {ratio:.1f} times its lowest level: the training diverged",
        evidence=(Evidence(what="last median loss over the lowest", value=round(ratio, 2), threshold=2),),
        confidence=Confidence.HIGH,
    )


def _lower_rate(
    facts: RunFacts, *, rule: str, title: str, evidence: tuple[Evidence, ...], confidence: Confidence
) -> Finding | None:
    rate = number_of(facts, Lever.LEARNING_RATE) or (facts.losses.highest_rate if facts.losses is not None else None)
    lower = None if not rate else _rounded(rate / 10 if rate >= 1e-3 else rate / 4)
    return find(
        facts,
        rule=rule,
        severity=Severity.CRITICAL,
        lever=Lever.LEARNING_RATE,
        value=lower,
        title=title,
        action=f"Lower the learning rate from {rate:g} to {lower:g}." if rate and lower else "Lower the learning rate.",
        impact="The loss keeps falling; what was trained after the rise is worthless.",
        group=Group.SPOILT_THE_RESULT,
        evidence=(*evidence, Evidence(what="learning rate", value=rate)),
        basis="loss and gradients rose together before they broke"
        if confidence is Confidence.HIGH
        else "the usual cause",
        confidence=confidence,
    )


def _rate_too_low(facts: RunFacts) -> Finding | None:
    config, losses = facts.config, facts.losses
    if config is None or losses is None or facts.is_spoilt or not config.trains_adapter:
        return None
    optimizer = str(value_of(facts, Lever.OPTIMIZER) or "")
    if not _ADAM.search(optimizer) or _ADAPTIVE.search(optimizer):
        return None
    rate = losses.highest_rate or number_of(facts, Lever.LEARNING_RATE)
    fall = losses.fall()
    if rate is None or not 0 < rate <= _TOO_LOW or fall is None or fall > _LEAST_FALL:
        return None
    return find(
        facts,
        rule="learning_rate_low",
        severity=Severity.WARNING,
        lever=Lever.LEARNING_RATE,
        value=_GOOD_RATE,
        title=f"The loss hardly moved at a learning rate of {rate:g}",
        action=f"Raise the learning rate to {_GOOD_RATE:g}, the usual one for an adapter.",
        impact="The model learns; at this rate the run was spent for nothing.",
        group=Group.OTHER,
        evidence=(
            Evidence(what="highest learning rate", value=rate, threshold=_TOO_LOW),
            Evidence(what="fall of the median loss, first to last third", value=round(fall, 3), threshold=_LEAST_FALL),
        ),
        basis="median loss of the first and the last third of the run",
        confidence=Confidence.HIGH,
    )


def _overfit(facts: RunFacts) -> Finding | None:
    """Validation loss that rises again while the training loss goes on falling."""
    table = facts.tables.get("StepValue")
    if table is None or facts.is_spoilt:
        return None
    by_name: dict[str, list[tuple[int, float]]] = {}
    for step, name, value in table.tuples("step", "name", "value"):
        if value is not None and _VALIDATION.search(name):
            by_name.setdefault(name, []).append((step, value))
    for name, values in by_name.items():
        if len(values) < _LEAST_VALIDATIONS:
            continue
        best_step, best = min(values, key=lambda pair: pair[1])
        last = median(value for _, value in values[-3:])
        if best <= 0 or last < best * _OVERFIT_RISE or best_step >= values[-3][0]:
            continue
        fall = facts.losses.fall() if facts.losses is not None else None
        if fall is None or fall <= 0:
            continue
        return find(
            facts,
            rule="overfit",
            severity=Severity.INFO,
            lever=Lever.STEPS,
            value=best_step,
            title=f"The validation loss rose by {(last / best - 1) * 100:.0f} % since its lowest, at step {best_step}",
            action=f"Train {best_step} steps, or take the checkpoint nearest to that step.",
            impact="A model that fits the validation data better, in less time.",
            group=Group.OTHER,
            evidence=(
                Evidence(what=f"lowest {name}", value=round(best, 4)),
                Evidence(what=f"last {name}", value=round(last, 4), threshold=round(best * _OVERFIT_RISE, 4)),
            ),
            basis="measured: validation loss against training loss",
        )
    return None


def _rounded(value: float) -> float:
    """Return a rate with two digits."""
    digits = 1 - math.floor(math.log10(abs(value)))
    return round(value, digits)
