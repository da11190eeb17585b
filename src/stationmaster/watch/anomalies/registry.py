"""The table of anomaly rules with their usual reactions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from stationmaster.errors import ConfigInvalid
from stationmaster.watch.anomalies.base import Anomaly, AnomalyFinding, AnomalyRule, Reaction, Vitals
from stationmaster.watch.anomalies.loss import find_divergence, find_loss_spike, find_nan_loss, find_plateau
from stationmaster.watch.anomalies.machine import (
    find_clock_skew,
    find_critical_memory,
    find_filling_disk,
    find_high_memory,
    find_idle_gpu,
    find_memory_creep,
)
from stationmaster.watch.anomalies.schedule import find_eta_beyond_credit, find_eta_beyond_hours, find_late_checkpoint


@dataclass(frozen=True, slots=True)
class Rule:
    find: AnomalyRule
    usual_reaction: Reaction


RULES: dict[str, Rule] = {
    "nan_loss": Rule(find_nan_loss, Reaction.ALERT),
    "divergence": Rule(find_divergence, Reaction.ALERT),
    "loss_spike": Rule(find_loss_spike, Reaction.NOTE),
    "plateau": Rule(find_plateau, Reaction.NOTE),
    "gpu_idle": Rule(find_idle_gpu, Reaction.ALERT),
    "memory_creep": Rule(find_memory_creep, Reaction.ALERT),
    "memory_high": Rule(find_high_memory, Reaction.NOTE),
    "memory_critical": Rule(find_critical_memory, Reaction.ALERT),
    "disk_filling": Rule(find_filling_disk, Reaction.ALERT),
    "checkpoint_cadence": Rule(find_late_checkpoint, Reaction.ALERT),
    "clock_skew": Rule(find_clock_skew, Reaction.NOTE),
    "eta_beyond_hours": Rule(find_eta_beyond_hours, Reaction.ALERT),
    "eta_beyond_credit": Rule(find_eta_beyond_credit, Reaction.ALERT),
}

USUAL_REACTIONS: dict[str, Reaction] = {
    **{kind: rule.usual_reaction for kind, rule in RULES.items()},
    "baseline": Reaction.NOTE,  # compares with past runs, which are not in Vitals: watch/baseline.py
}


def find_anomalies(
    vitals: Vitals, reactions: Mapping[str, Reaction] | None = None, *, reported: Collection[str] = ()
) -> list[AnomalyFinding]:
    """Everything that is wrong with a run, in the order of the table, without the kinds in `reported`."""
    found = (rule.find(vitals) for kind, rule in RULES.items() if kind not in reported)
    return [with_reaction(anomaly, reactions) for anomaly in found if anomaly is not None]


def with_reaction(anomaly: Anomaly, reactions: Mapping[str, Reaction] | None = None) -> AnomalyFinding:
    """The anomaly with the configured reaction, or the usual one."""
    reaction = (reactions or {}).get(anomaly.kind, USUAL_REACTIONS[anomaly.kind])
    return AnomalyFinding(anomaly=anomaly, reaction=reaction)


def read_reactions(settings: Mapping[str, str]) -> dict[str, Reaction]:
    """Reactions from settings such as {"nan_loss": "stop"}. Raises ConfigInvalid for an unknown rule or reaction."""
    reactions = {}
    for kind, name in settings.items():
        if kind not in USUAL_REACTIONS:
            raise ConfigInvalid(f"unknown anomaly: {kind}", hint=f"use one of: {', '.join(USUAL_REACTIONS)}")
        try:
            reactions[kind] = Reaction(name)
        except ValueError:
            hint = f"use one of: {', '.join(Reaction)}"
            raise ConfigInvalid(f"unknown reaction to {kind}: {name!r}", hint=hint) from None
    return reactions
