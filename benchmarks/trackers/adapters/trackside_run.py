"""The collector of this repository."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import Finish, Log

IMPORT = "from trackside import Run"
_NAME = "aitk_db.db"


def start(folder: str) -> tuple[Log, Finish]:
    from trackside import Run

    run = Run("bench", f"{folder}/{_NAME}")

    def log(step: int, loss: float, lr: float, grad_norm: float) -> None:
        run.step(step, loss=loss, lr=lr, grad_norm=grad_norm)

    return log, run.close


def stored_steps(folder: str) -> int:
    """Count the rows of the database, which the next run has completed from what the killed one left behind."""
    import sqlite3

    from trackside import Run

    Run("another", f"{folder}/{_NAME}").close()
    connection = sqlite3.connect(f"{folder}/{_NAME}")
    found = connection.execute("SELECT count(DISTINCT step) FROM StepMetric WHERE job_id = 'bench'").fetchone()
    return int(found[0])
