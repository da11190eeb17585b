"""What a rule gives: a recommendation and its place among the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from stationmaster.analysis.configs.ai_toolkit import AiToolkitConfig
from stationmaster.analysis.configs.base import Setting, TrainerConfig, number
from stationmaster.analysis.configs.kohya import KohyaConfig
from stationmaster.analysis.facts.run_facts import RunFacts
from stationmaster.analysis.levers import Lever
from stationmaster.analysis.report import Confidence, Evidence, Recommendation, Severity


class Group(IntEnum):
    """The order within a severity: what matters most first."""

    ENDED_THE_RUN = 1
    SPOILT_THE_RESULT = 2
    SURVIVED_OUT_OF_MEMORY = 3
    MEMORY = 4
    TIME = 5
    OTHER = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    recommendation: Recommendation
    group: Group
    seconds_lost: float = 0.0

    @property
    def order(self) -> tuple[int, int, float]:
        return self.recommendation.severity.rank, self.group, -self.seconds_lost


Rule = Callable[[RunFacts], Iterator[Finding]]

_NO_VALUES: dict[str, TrainerConfig] = {
    "ai-toolkit": AiToolkitConfig(process={"datasets": [{}], "network": {}}),
    "kohya": KohyaConfig(options={"network_module": "networks.lora"}),
}


def setting_of(facts: RunFacts, lever: Lever) -> Setting | None:
    """Return where a lever is set and to what; without a config the value is None, that is, unknown."""
    if lever.is_outside:
        return Setting(path=lever.value, value=_outside_value(facts, lever), is_given=False)
    if facts.config is not None:
        return facts.config.setting(lever)
    paths = _NO_VALUES.get(facts.framework or "")
    if paths is None:
        return Setting(path=lever.value, value=None, is_given=False)
    known = paths.setting(lever)
    return None if known is None else Setting(path=known.path, value=None, is_given=False)


def value_of(facts: RunFacts, lever: Lever) -> Any:
    """Return what a lever is set to; None if that is unknown or it has no effect here."""
    setting = setting_of(facts, lever)
    return None if setting is None else setting.value


def number_of(facts: RunFacts, lever: Lever) -> float | None:
    return number(value_of(facts, lever))


def find(
    facts: RunFacts,
    *,
    rule: str,
    severity: Severity,
    lever: Lever,
    value: Any,
    title: str,
    action: str,
    impact: str,
    group: Group,
    evidence: tuple[Evidence, ...] = (),
    basis: str,
    confidence: Confidence = Confidence.MEDIUM,
    seconds_lost: float = 0.0,
) -> Finding | None:
    """Return the finding; None where the lever does not exist here or is already set so."""
    setting = setting_of(facts, lever)
    if setting is None or (value is not None and _same(value, setting.value)):
        return None
    recommendation = Recommendation(
        rule=rule,
        severity=severity,
        lever=lever,
        title=title,
        action=action,
        impact=impact,
        config_path=setting.path,
        current_value=setting.value,
        recommended_value=value,
        evidence=tuple(each for each in evidence if each.value is not None),  # what was not measured proves nothing
        basis=basis,
        confidence=confidence,
    )
    return Finding(recommendation=recommendation, group=group, seconds_lost=seconds_lost)


def gb(amount: float) -> str:
    """Return an amount of memory for a sentence.

    >>> gb(66.04), gb(9.41), gb(0.192)
    ('66 GB', '9.4 GB', '0.19 GB')
    """
    return f"{amount:.{0 if amount >= 20 else 1 if amount >= 1 else 2}f} GB"


def percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def duration(seconds: float) -> str:
    """Return a time for a sentence.

    >>> duration(42), duration(600), duration(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def cost_of(facts: RunFacts, seconds: float) -> str:
    """Return what a time cost, as the end of a sentence; empty where the price is unknown."""
    price = facts.price_per_hour
    if not price:
        return ""
    return f", ${seconds / 3600 * price:.2f} at ${price:.2f} per hour"


def _outside_value(facts: RunFacts, lever: Lever) -> Any:
    if lever is Lever.MACHINE_GPU_MEMORY and facts.gpu is not None:
        return round(facts.gpu.size_gb, 2)
    if lever is Lever.MACHINE_MEMORY and facts.system is not None:
        return round(facts.system.size_gb, 2)
    if lever is Lever.MACHINE_SHM:
        return facts.info_number("shm_size_gb")
    return None


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    first, second = number(one), number(other)
    if first is not None and second is not None:
        return abs(first - second) <= 1e-9 * max(abs(first), abs(second))
    return bool(one == other)
