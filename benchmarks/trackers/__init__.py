"""Experiment trackers beside each other: an adapter for each, its environment, and a probe that runs inside it."""
