"""Vast.ai: its API as it behaves, and a provider over it."""
