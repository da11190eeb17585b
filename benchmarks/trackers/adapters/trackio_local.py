"""Trackio, logging to this machine."""

from __future__ import annotations

import importlib
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import Finish, Log

IMPORT = "import trackio"
_PROJECT = "bench"
_RUN = "run"


def start(folder: str) -> tuple[Log, Finish]:
    os.environ["TRACKIO_DIR"] = folder
    trackio = importlib.import_module("trackio")
    run = trackio.init(project=_PROJECT, name=_RUN, embed=False, auto_log_gpu=False, auto_log_cpu=False)

    def log(step: int, loss: float, lr: float, grad_norm: float) -> None:
        run.log({"loss": loss, "lr": lr, "grad_norm": grad_norm}, step=step)

    return log, run.finish


def stored_steps(folder: str) -> int:
    os.environ["TRACKIO_DIR"] = folder
    storage = importlib.import_module("trackio.sqlite_storage").SQLiteStorage
    return len({row["step"] for row in storage.get_logs(_PROJECT, _RUN)})
