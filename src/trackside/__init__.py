"""The program that runs a job's steps on the machine: standard library only, Python 3.8 or newer."""

from __future__ import annotations

__version__ = "0.1.0"
