"""One file per tracker. Each logs a step with three numbers, and counts the steps that its files hold.

Only the tracker's own environment has its packages, so they are imported inside the functions. `typing` is not imported
at all: a tracker that needs it pays for it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    #: Logs one step: its number, loss, learning rate and gradient norm.
    Log = Callable[[int, float, float, float], None]
    Finish = Callable[[], None]

    class Adapter(Protocol):
        """What the module of a tracker provides."""

        #: What a training script writes at its top.
        IMPORT: str

        def start(self, folder: str) -> tuple[Log, Finish]:
            """Begin a run whose files are below `folder`; return what logs a step and what ends the run."""

        def stored_steps(self, folder: str) -> int:
            """Return how many steps can be read from `folder`, in the tracker's own way."""
