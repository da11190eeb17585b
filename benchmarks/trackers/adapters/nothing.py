"""No tracker: what the loop itself costs."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import Finish, Log

IMPORT = "import time"


def start(folder: str) -> tuple[Log, Finish]:
    def log(step: int, loss: float, lr: float, grad_norm: float) -> None:
        pass

    return log, lambda: None


def stored_steps(folder: str) -> int:
    return 0
