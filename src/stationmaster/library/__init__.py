"""What your own Python programs import: watch any training, and send messages through your channels."""

from stationmaster.library.training_monitor import FoundCheckpoint, JobInfo, Poll, TrainingMonitor
from stationmaster.library.training_notifier import NotifyResult, TrainingNotifier

__all__ = ["FoundCheckpoint", "JobInfo", "NotifyResult", "Poll", "TrainingMonitor", "TrainingNotifier"]
