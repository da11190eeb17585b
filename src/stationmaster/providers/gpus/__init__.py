"""Finds the GPUs of this computer with the tools that their makers supply."""
