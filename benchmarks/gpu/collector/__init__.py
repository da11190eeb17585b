"""The parts of `collector_check.py`, each a process of its own."""
