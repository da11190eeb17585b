"""All families of rules."""

from __future__ import annotations

from stationmaster.analysis.rules.base import Rule
from stationmaster.analysis.rules.crashes import crash_rules
from stationmaster.analysis.rules.data_loading import data_rules
from stationmaster.analysis.rules.headroom import headroom_rules
from stationmaster.analysis.rules.learning import learning_rules
from stationmaster.analysis.rules.machine import machine_rules
from stationmaster.analysis.rules.memory import memory_rules
from stationmaster.analysis.rules.pauses import pause_rules

FAMILIES: tuple[Rule, ...] = (
    crash_rules,
    memory_rules,
    learning_rules,
    data_rules,
    pause_rules,
    machine_rules,
    headroom_rules,
)
