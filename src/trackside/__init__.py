"""Runs a job's steps on the machine and records its training: standard library only, Python 3.8 or newer.

In a training script: `from trackside import Run`.
"""

from __future__ import annotations

TYPE_CHECKING = False  # the import of typing would take longer than everything else that Run needs
if TYPE_CHECKING:
    from typing import Any

    from trackside.collector import Run

__version__ = "0.1.0"
__all__ = ["Run", "__version__"]


def __getattr__(name: str) -> Any:
    # Imported on first use: most verbs do not need it.
    if name == "Run":
        from trackside.collector import Run

        return Run
    raise AttributeError("module %r has no attribute %r" % (__name__, name))
