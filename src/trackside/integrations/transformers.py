"""A callback for the Trainer of transformers, and for trainers built on it, such as those of TRL."""

from __future__ import annotations

import time
from typing import Any, Mapping, NamedTuple, Optional

from transformers import TrainerCallback  # type: ignore[import-not-found, unused-ignore]

from trackside.collector import Run
from trackside.integrations.metric_names import step_values, without_arguments
from trackside.integrations.quiet_hooks import quiet
from trackside.integrations.training import Training

_NOT_MEASURED = float("nan")


class _EndedStep(NamedTuple):
    step: int
    at: float
    seconds: Optional[float]


class TracksideCallback(TrainerCallback):
    """Records a training: `Trainer(..., callbacks=[TracksideCallback()])`.

    Each optimizer step becomes a row with its time. Its loss is known where the Trainer logs it (`logging_steps`);
    the callback never reads a value from the GPU.
    """

    def __init__(self, run: Run | None = None, *, facts: Mapping[str, Any] | None = None) -> None:
        """`facts` are recorded with the run, such as `context_tokens`."""
        self._training = Training(run)
        self._facts = dict(facts or {})
        self._batch_size: int | None = None
        self._learning_rate: float | None = None
        #: Where the time of the next step begins: at the end of the last one, or of the save or evaluation after it.
        self._since: float | None = None
        #: The step that waits for the values which the Trainer is about to log.
        self._waiting: _EndedStep | None = None
        self._saving = False

    @quiet
    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        before, batch_size = self._batch_size, getattr(state, "train_batch_size", None) or args.train_batch_size
        # A training that did not end, with a larger batch: the Trainer ran out of memory and tries again.
        retries = self._training.is_open and getattr(args, "auto_find_batch_size", False) and before != batch_size
        if retries:
            self._training.out_of_memory(batch_size=before)
        self._batch_size, self._since, self._waiting, self._saving = batch_size, None, None, False
        self._training.begin(
            "transformers", args.to_dict(), total_steps=state.max_steps or None, rank=_rank(args, state)
        )
        if self._run is not None:
            # Rows without a loss are no sign of nan.
            self._run.info(**{**self._facts, "loss_every_steps": _loss_every_steps(args, state)})
            if retries:
                self._run.event("batch_size_adjustment", old_batch_size=before, new_batch_size=batch_size)

    @quiet
    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._write_waiting({})  # the Trainer did not log it after all
        if self._since is None:
            self._since = time.perf_counter()
        self._learning_rate = _learning_rate(kwargs.get("optimizer"))
        self._end_save(state)  # another callback may have withdrawn it

    @quiet
    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._run is None:
            return
        now = time.perf_counter()
        seconds = None if self._since is None else now - self._since
        self._waiting, self._since = _EndedStep(state.global_step, time.time(), seconds), now
        if not _logs_this_step(args, state, control):
            self._write_waiting({})
        self._start_save_if_next(state, control)

    @quiet
    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        if self._run is None:
            return
        logs = logs or {}
        if "loss" in logs:
            self._write_logged(state.global_step, logs)
        else:  # an evaluation, or the summary at the end
            self._run.values(state.global_step, **without_arguments(logs))
        self._start_save_if_next(state, control)

    @quiet
    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._restart_clock()
        self._start_save_if_next(state, control)

    @quiet
    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._run is None:
            return
        self._start_save(state)
        self._end_save(state)

    @quiet
    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._run is None:
            return
        if not control.should_log:
            self._write_waiting({})
        self._start_save_if_next(state, control)

    @quiet
    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._write_waiting({})
        self._end_save(state)
        self._training.end()

    @property
    def _run(self) -> Run | None:
        return self._training.run

    def _write_logged(self, step: int, logs: Mapping[str, Any]) -> None:
        """Write the values of the step that waits for them, or of one that was written without them."""
        if self._waiting is None:
            self._waiting = _EndedStep(step, time.time(), _NOT_MEASURED)
        self._write_waiting(logs)

    def _write_waiting(self, logs: Mapping[str, Any]) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and self._run is not None:
            self._run.step(waiting.step, at=waiting.at, step_time=waiting.seconds, **self._columns(logs))

    def _columns(self, logs: Mapping[str, Any]) -> dict[str, Any]:
        found = step_values(logs)
        return {
            **found.more,
            "loss": found.loss,
            "lr": found.lr if self._learning_rate is None else self._learning_rate,
            "grad_norm": found.grad_norm,
            "batch_size": self._batch_size,
        }

    def _start_save_if_next(self, state: Any, control: Any) -> None:
        if control.should_save and not control.should_log and not control.should_evaluate:
            self._start_save(state)

    def _start_save(self, state: Any) -> None:
        if self._run is not None and not self._saving:
            self._saving = True
            self._run.event("save_start", step=state.global_step)

    def _end_save(self, state: Any) -> None:
        if self._run is not None and self._saving:
            self._saving = False
            self._run.event("save_end", step=state.global_step)
            self._restart_clock()

    def _restart_clock(self) -> None:
        if self._since is not None:
            self._since = time.perf_counter()


def _rank(args: Any, state: Any) -> int:
    return 0 if state.is_world_process_zero else max(1, int(args.process_index))


def _learning_rate(optimizer: Any) -> float | None:
    """Return the learning rate of the next step, unless it is a tensor: reading that could wait for the GPU."""
    groups = getattr(optimizer, "param_groups", None)
    rate = groups[0].get("lr") if groups else None
    return rate if isinstance(rate, float) else None


def _loss_every_steps(args: Any, state: Any) -> int | None:
    """Return the number of steps from one logged loss to the next; None: once per epoch, or never."""
    return int(state.logging_steps or 0) or None if _logging_strategy(args) == "steps" else None


def _logging_strategy(args: Any) -> str:
    return str(getattr(args.logging_strategy, "value", args.logging_strategy))


def _logs_this_step(args: Any, state: Any, control: Any) -> bool:
    """Return whether the Trainer logs the values of the step that has just ended."""
    if control.should_log:
        return True
    ends = control.should_training_stop or control.should_epoch_stop or float(state.epoch or 0.5).is_integer()
    return ends and _logging_strategy(args) == "epoch"
