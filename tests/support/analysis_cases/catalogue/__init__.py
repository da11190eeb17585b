"""All cases, a file for each family of causes."""

from tests.support.analysis_cases.case import CASES
from tests.support.analysis_cases.catalogue import combinations, crashes, losses, memory, oddities, time, workers

__all__ = ["CASES", "combinations", "crashes", "losses", "memory", "oddities", "time", "workers"]
