"""Simulated trainings with the answer to each: what an analysis must find in them, and what it must not claim."""
