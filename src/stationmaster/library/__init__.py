"""What your own Python programs import: watch any training, and send messages through your channels."""

from stationmaster.library.checkpoints import FoundCheckpoint
from stationmaster.library.job_info import JobInfo
from stationmaster.library.training_monitor import Poll, TrainingMonitor
from stationmaster.library.training_notifier import NotifyResult, TrainingNotifier

__all__ = ["FoundCheckpoint", "JobInfo", "NotifyResult", "Poll", "TrainingMonitor", "TrainingNotifier"]
