"""The table of rules with their usual reactions: the whole of it, visible."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from stationmaster.errors import ConfigInvalid
from stationmaster.watch.anomalies.base import Anomaly, AnomalyRule, Finding, Reaction, Vitals
from stationmaster.watch.anomalies.checkpoint_cadence import find_broken_cadence
from stationmaster.watch.anomalies.clock_skew import find_clock_skew
from stationmaster.watch.anomalies.disk_filling import find_filling_disk
from stationmaster.watch.anomalies.divergence import find_divergence
from stationmaster.watch.anomalies.gpu_idle import find_idle_gpu
from stationmaster.watch.anomalies.loss_spike import find_loss_spike
from stationmaster.watch.anomalies.memory_creep import find_memory_creep
from stationmaster.watch.anomalies.nan_loss import find_nan_loss
from stationmaster.watch.anomalies.over_limits import find_eta_beyond_credit, find_eta_beyond_hours
from stationmaster.watch.anomalies.plateau import find_plateau

RULES: dict[str, AnomalyRule] = {
    "nan_loss": find_nan_loss,
    "divergence": find_divergence,
    "loss_spike": find_loss_spike,
    "plateau": find_plateau,
    "gpu_idle": find_idle_gpu,
    "memory_creep": find_memory_creep,
    "disk_filling": find_filling_disk,
    "checkpoint_cadence": find_broken_cadence,
    "clock_skew": find_clock_skew,
    "eta_beyond_hours": find_eta_beyond_hours,
    "eta_beyond_credit": find_eta_beyond_credit,
}

USUAL_REACTIONS: dict[str, Reaction] = {
    "nan_loss": Reaction.ALERT,
    "divergence": Reaction.ALERT,
    "loss_spike": Reaction.NOTE,
    "plateau": Reaction.NOTE,
    "gpu_idle": Reaction.ALERT,
    "memory_creep": Reaction.ALERT,
    "disk_filling": Reaction.ALERT,
    "checkpoint_cadence": Reaction.ALERT,
    "clock_skew": Reaction.NOTE,
    "eta_beyond_hours": Reaction.ALERT,
    "eta_beyond_credit": Reaction.ALERT,
    "baseline": Reaction.NOTE,
}


def find_anomalies(
    vitals: Vitals, reactions: Mapping[str, Reaction] | None = None, *, told: Collection[str] = ()
) -> list[Finding]:
    """Everything out of order in a run, in the order of the table; kinds in `told` are left out."""
    found = (rule(vitals) for kind, rule in RULES.items() if kind not in told)
    return [with_reaction(anomaly, reactions) for anomaly in found if anomaly is not None]


def with_reaction(anomaly: Anomaly, reactions: Mapping[str, Reaction] | None = None) -> Finding:
    """What to do about it: as configured, else as usual."""
    return Finding(anomaly=anomaly, reaction=(reactions or {}).get(anomaly.kind, USUAL_REACTIONS[anomaly.kind]))


def read_reactions(settings: Mapping[str, str]) -> dict[str, Reaction]:
    """Reactions from settings such as {"nan_loss": "stop"}. Raises ConfigInvalid for an unknown rule or reaction."""
    reactions = {}
    for kind, name in settings.items():
        if kind not in USUAL_REACTIONS:
            raise ConfigInvalid(f"no anomaly is called {kind}", hint=f"known: {', '.join(USUAL_REACTIONS)}")
        try:
            reactions[kind] = Reaction(name)
        except ValueError:
            hint = f"use {', '.join(Reaction)}"
            raise ConfigInvalid(f"{name!r} is no reaction to {kind}", hint=hint) from None
    return reactions
