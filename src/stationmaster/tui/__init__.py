"""The terminal app: all trainings or machines on one screen, and one of them in detail."""
