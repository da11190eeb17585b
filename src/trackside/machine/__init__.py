"""The machine itself: clock, locks, processes, GPUs, memory and disk, and its guard."""
