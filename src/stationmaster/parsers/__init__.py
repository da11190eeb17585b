"""From a training's output to readings, for a dozen families of trainers."""

from stationmaster.parsers.base import ErrorKind, Phase, Reading, Scope, Summary, TrainingError
from stationmaster.parsers.patterns import UserPattern
from stationmaster.parsers.reader import LogReader
from stationmaster.parsers.registry import FAMILIES

__all__ = ["FAMILIES", "ErrorKind", "LogReader", "Phase", "Reading", "Scope", "Summary", "TrainingError", "UserPattern"]
