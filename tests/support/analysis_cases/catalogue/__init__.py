"""All cases, a file for each family of causes."""

from tests.support.analysis_cases.case import CASES
from tests.support.analysis_cases.catalogue import crashes, losses, memory, oddities, time, workers

__all__ = ["CASES", "crashes", "losses", "memory", "oddities", "time", "workers"]
