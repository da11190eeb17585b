"""MLflow with its store in a SQLite file."""

from __future__ import annotations

import importlib
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import Finish, Log

IMPORT = "import mlflow"
_EXPERIMENT = "bench"


def start(folder: str) -> tuple[Log, Finish]:
    mlflow = _connected(folder)
    mlflow.set_experiment(_EXPERIMENT)
    mlflow.start_run()

    def log(step: int, loss: float, lr: float, grad_norm: float) -> None:
        mlflow.log_metrics({"loss": loss, "lr": lr, "grad_norm": grad_norm}, step=step)

    return log, mlflow.end_run


def stored_steps(folder: str) -> int:
    """Count the steps of which all three values can be read."""
    mlflow = _connected(folder)
    client = mlflow.MlflowClient()
    run = client.search_runs([client.get_experiment_by_name(_EXPERIMENT).experiment_id])[0]
    histories = [client.get_metric_history(run.info.run_id, name) for name in ("loss", "lr", "grad_norm")]
    return len(set.intersection(*({one.step for one in history} for history in histories)))


def _connected(folder: str) -> Any:
    mlflow = importlib.import_module("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    return mlflow
