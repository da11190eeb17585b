"""TensorBoard's event files, written by tensorboardX, which needs neither PyTorch nor TensorFlow."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import Finish, Log

IMPORT = "import tensorboardX"


def start(folder: str) -> tuple[Log, Finish]:
    writer = importlib.import_module("tensorboardX").SummaryWriter(folder)
    add = writer.add_scalar

    def log(step: int, loss: float, lr: float, grad_norm: float) -> None:
        add("loss", loss, step)
        add("lr", lr, step)
        add("grad_norm", grad_norm, step)

    return log, writer.close


def stored_steps(folder: str) -> int:
    """Count the steps of which all three values can be read."""
    accumulator = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(folder, size_guidance={accumulator.SCALARS: 0})
    events.Reload()
    known = events.Tags()["scalars"]
    names = ("loss", "lr", "grad_norm")
    if not set(names) <= set(known):
        return 0
    return len(set.intersection(*({one.step for one in events.Scalars(name)} for name in names)))
