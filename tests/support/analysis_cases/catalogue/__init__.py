"""All cases, a file for each family of causes."""

from tests.support.analysis_cases.case import CASES
from tests.support.analysis_cases.catalogue import (
    calm,
    combinations,
    crashes,
    drawn,
    losses,
    memory,
    oddities,
    precedence,
    time,
    wordings,
    workers,
)

__all__ = [
    "CASES",
    "calm",
    "combinations",
    "crashes",
    "drawn",
    "losses",
    "memory",
    "oddities",
    "precedence",
    "time",
    "wordings",
    "workers",
]
