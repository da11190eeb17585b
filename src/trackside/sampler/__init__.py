"""Readings of memory, processes, GPUs, disk and network of this machine."""
