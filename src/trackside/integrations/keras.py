"""A callback for `fit` of Keras 3, with any backend."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from heapq import heappop, heappush
from typing import Any, Deque, List, Mapping, Tuple

import keras  # type: ignore[import-not-found, unused-ignore]

from trackside.collector import Run
from trackside.integrations.metric_names import without_arguments
from trackside.integrations.quiet_hooks import quiet
from trackside.integrations.training import Training


class TracksideCallback(keras.callbacks.Callback):
    """Records a training: `model.fit(..., callbacks=[TracksideCallback()])`.

    Each optimizer step becomes a row with its loss, learning rate and time; the metrics of an epoch are stored at its
    end.
    """

    #: With backends that allow it, Keras then reads a batch's values in a thread, and the training does not wait.
    async_safe = True

    def __init__(self, run: Run | None = None, *, batch_size: int | None = None) -> None:
        super().__init__()
        self._training = Training(run)
        self._batch_size = batch_size
        self._lock = threading.Lock()
        self._optimizer: Any = None
        self._accumulation = 1
        self._executed_together = 1
        #: Batches that the optimizer saw before this epoch, and those of this epoch.
        self._batches_before = 0
        self._batches = 0
        #: The last step that is written, the batches of this epoch until then, and the mean of their losses.
        self._step = 0
        self._averaged = 0
        self._mean = 0.0
        #: A number, or the schedule that has one for each batch; and when a schedule may be asked again.
        self._learning_rate: Any = None
        self._schedule_due = 0.0
        self._since: float | None = None
        #: First batches of executions that have not ended; and those that ended, which threads may report in any order.
        self._begun: Deque[int] = deque()
        self._ended: List[Tuple[int, float, float, Mapping[str, Any]]] = []

    @quiet
    def on_train_begin(self, logs: Any = None) -> None:
        model = self.model
        self._optimizer = model.optimizer
        self._accumulation = int(getattr(self._optimizer, "gradient_accumulation_steps", None) or 1)
        self._executed_together = int(getattr(model, "steps_per_execution", None) or 1)
        self._batches_before = int(_number(getattr(self._optimizer, "_iterations", self._optimizer.iterations)))
        self._step, self._batches, self._since = self._batches_before // self._accumulation, 0, None
        epochs, batches = self.params.get("epochs"), self.params.get("steps")
        self._training.begin(
            "keras",
            _config(model, self.params),
            total_steps=epochs * batches // self._accumulation if epochs and batches else None,
            rank=_rank(),
        )

    @quiet
    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._batches_before += self._batches
        self._batches, self._averaged, self._mean, self._learning_rate = 0, 0, 0.0, None
        self._begun.clear()
        self._ended.clear()
        self._since = time.perf_counter()

    @quiet
    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if self._run is None:
            return
        if self._learning_rate is None:  # now every callback has had its chance to set it
            self._learning_rate = _learning_rate(self._optimizer)
        with self._lock:
            self._begun.append(batch)

    @quiet
    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        if self._run is None:
            return
        with self._lock:
            heappush(self._ended, (batch, time.perf_counter(), time.time(), logs or {}))
            while self._ended and self._begun and self._is_next(self._ended[0][0]):
                ended, now, at, values = heappop(self._ended)
                self._batches = self._batches_done(self._begun.popleft(), ended)
                self._end_step(values, now=now, at=at)

    @quiet
    def on_test_end(self, logs: Any = None) -> None:
        self._since = time.perf_counter()

    @quiet
    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        if self._run is None:
            return
        values = {"epoch_loss" if name == "loss" else name: value for name, value in (logs or {}).items()}
        self._run.values(self._step, **{**without_arguments(values), "epoch": epoch + 1})

    @quiet
    def on_train_end(self, logs: Any = None) -> None:
        self._training.end()

    @property
    def _run(self) -> Run | None:
        return self._training.run

    def _is_next(self, batch: int) -> bool:
        return batch >= self._begun[0] and (len(self._begun) == 1 or batch < self._begun[1])

    def _end_step(self, logs: Mapping[str, Any], *, now: float, at: float) -> None:
        batches = self._batches_before + self._batches
        step = batches // self._accumulation
        if step == self._step or self._run is None:  # gradients are being accumulated
            return
        mean = float(logs.get("loss", float("nan")))
        since = now if self._since is None else self._since
        now = max(now, since)  # threads may report two batches in the wrong order
        self._run.step(
            step,
            # Keras logs the mean since the start of the epoch, in which a single step would not show.
            loss=(mean * self._batches - self._mean * self._averaged) / (self._batches - self._averaged),
            lr=self._rate(batches - 1),
            batch_size=self._batch_size,
            at=at,
            step_time=(now - since) / (step - self._step),
        )
        self._step, self._averaged, self._mean, self._since = step, self._batches, mean, now

    def _batches_done(self, begun: int, ended: int) -> int:
        """Return how many batches of the epoch are done."""
        # Old versions of Keras name the first batch at the end, too; new ones name more than an epoch has.
        return min(max(begun + self._executed_together, ended + 1), self.params.get("steps") or sys.maxsize)

    def _rate(self, batches: int) -> float | None:
        if not callable(self._learning_rate):
            return None if self._learning_rate is None else float(self._learning_rate)
        started = time.perf_counter()
        if started < self._schedule_due:
            return None
        rate = _number(self._learning_rate(batches))
        ended = time.perf_counter()
        # A schedule computes with tensors, which takes longer than all else here: at most a hundredth of the time.
        self._schedule_due = ended + 100 * (ended - started)
        return rate


def _learning_rate(optimizer: Any) -> Any:
    """Return the learning rate of the epoch: a number, or the schedule that has one for each batch."""
    rate = getattr(optimizer, "_learning_rate", None)
    if isinstance(rate, keras.optimizers.schedules.LearningRateSchedule):
        return rate
    return _number(optimizer.learning_rate)


def _number(value: Any) -> float:
    return float(keras.ops.convert_to_numpy(value))


def _config(model: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "model": model.name,
        "parameters": model.count_params() if model.built else None,
        "backend": keras.backend.backend(),
        "optimizer": model.optimizer.get_config(),
        "epochs": params.get("epochs"),
        "steps_per_epoch": params.get("steps"),
    }


def _rank() -> int:
    if keras.backend.backend() == "jax":
        return int(sys.modules["jax"].process_index())
    return int(os.environ.get("RANK") or 0)
