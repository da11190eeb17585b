"""Callbacks and trackers that feed a `Run` from a training framework; each module imports its framework."""
