"""A callback for the Trainer of Lightning, under both its names: `lightning` and `pytorch_lightning`."""

from __future__ import annotations

import importlib
import importlib.util
import math
import sys
import time
from typing import Any, Mapping

from trackside.collector import Run
from trackside.integrations.late_values import LateRows, Numbers
from trackside.integrations.metric_names import step_values, without_arguments
from trackside.integrations.quiet_hooks import quiet
from trackside.integrations.training import Training

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")
_SETTINGS = (
    "max_epochs", "max_steps", "accumulate_grad_batches", "gradient_clip_val", "precision", "num_devices", "num_nodes",
    "log_every_n_steps", "val_check_interval",
)  # fmt: skip


def _callback_class() -> Any:
    """Return the class of callbacks that the script's Trainer accepts; of both, if that is not known yet."""
    loaded = [name for name in _PACKAGES if name in sys.modules]
    installed = [name for name in _PACKAGES if importlib.util.find_spec(name.partition(".")[0]) is not None]
    found = [importlib.import_module(name).Callback for name in loaded or installed or _PACKAGES[:1]]
    return type("Callback", tuple(found), {})


class TracksideCallback(_callback_class()):  # type: ignore[misc]  # the base is one of two packages' class
    """Records a training: `Trainer(..., callbacks=[TracksideCallback()])`.

    Each optimizer step becomes a row with its loss, learning rate and time; logged metrics are stored every
    `log_every_n_steps` steps, and after each epoch and validation. Values on the GPU are copied without waiting.
    """

    def __init__(self, run: Run | None = None) -> None:
        super().__init__()
        self._late = LateRows()
        self._training = Training(run, before_end=self._write_rest)
        self._step = 0
        self._loss: Any = None
        self._learning_rate: Any = None
        #: Where the time of the next step begins: at the end of the last one, or of the save or validation after it.
        self._since: float | None = None
        self._saving = False
        #: The metrics that are stored, because Lightning keeps old ones beside the new ones, and the names of a step's.
        self._stored: dict[str, Any] = {}
        self._names_of_steps: set[str] = set()

    @quiet
    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._training.begin(
            "lightning", _config(trainer, pl_module), total_steps=_total_steps(trainer), rank=trainer.global_rank
        )
        self._step, self._since, self._loss, self._saving = trainer.global_step, None, None, False

    @quiet
    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self._between_steps()
        if self._since is None:
            self._since = time.perf_counter()

    @quiet
    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        # Afterwards the scheduler has set the next step's.
        self._learning_rate = optimizer.param_groups[0]["lr"]

    @quiet
    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if self._run is None:
            return
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        if loss is not None:  # of an accumulated step, each batch has its share
            self._loss = loss if self._loss is None else self._loss + loss
        if trainer.global_step != self._step:
            self._end_step(trainer)

    @quiet
    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if not trainer.sanity_checking:
            self._store_metrics(trainer)
            self._restart_clock()

    @quiet
    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._store_metrics(trainer)

    @quiet
    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._between_steps()
        self._restart_clock()

    @quiet
    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: Any) -> None:
        # Lightning has no hook after the save: the next hook ends it.
        self._between_steps()
        if self._run is not None:
            self._saving = True
            self._run.event("save_start")

    @quiet
    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        self._training.end()

    @quiet
    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._training.end(exception)

    @property
    def _run(self) -> Run | None:
        return self._training.run

    def _end_step(self, trainer: Any) -> None:
        now, step = time.perf_counter(), trainer.global_step
        elapsed = None if self._since is None else (now - self._since) / (step - self._step)
        metrics = self._new_metrics(trainer) if step % max(1, trainer.log_every_n_steps) == 0 else {}
        self._names_of_steps.update(metrics)
        logged = step_values(metrics)
        values = {
            **logged.more,
            "loss": logged.loss if self._loss is None else self._loss,
            "lr": logged.lr if self._learning_rate is None else self._learning_rate,
            "grad_norm": logged.grad_norm,
        }
        run, at, batch_size = self._run, time.time(), getattr(trainer.train_dataloader, "batch_size", None)

        def write(numbers: Numbers) -> None:
            if run is not None:
                run.step(step, batch_size=batch_size, at=at, step_time=elapsed, **numbers)

        self._late.add({name: value for name, value in values.items() if value is not None}, write)
        self._step, self._since, self._loss, self._learning_rate = step, now, None, None

    def _store_metrics(self, trainer: Any) -> None:
        """Store the metrics of an epoch or a validation."""
        self._between_steps()
        run, step, at = self._run, self._step, time.time()

        def write(numbers: Numbers) -> None:
            if run is not None:
                run.values(step, at=at, **numbers)

        metrics = self._new_metrics(trainer)
        new = {name: value for name, value in metrics.items() if name not in self._names_of_steps}
        if new:
            self._late.add(without_arguments(new), write)

    def _new_metrics(self, trainer: Any) -> dict[str, Any]:
        metrics = dict(trainer.callback_metrics)
        new = {name: value for name, value in metrics.items() if self._stored.get(name) is not value}
        self._stored = metrics
        return new

    def _between_steps(self) -> None:
        self._late.write_ready()
        if self._run is not None and self._saving:
            self._saving = False
            self._run.event("save_end")
            self._restart_clock()

    def _restart_clock(self) -> None:
        if self._since is not None:
            self._since = time.perf_counter()

    def _write_rest(self) -> None:
        self._between_steps()
        self._late.write_all()  # fails after some errors of the GPU


def _config(trainer: Any, pl_module: Any) -> dict[str, Any]:
    settings = {name: getattr(trainer, name, None) for name in _SETTINGS}
    return {**settings, "strategy": type(trainer.strategy).__name__, **dict(pl_module.hparams)}


def _total_steps(trainer: Any) -> int | None:
    steps = float(trainer.estimated_stepping_batches)
    return int(steps) if math.isfinite(steps) and steps > 0 else None
