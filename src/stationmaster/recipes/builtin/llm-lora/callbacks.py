"""Callbacks of the trainer: log lines, numbered adapters, saving and stopping on request, a resumed schedule."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from adapters import save_adapter
from stop_requests import Requests
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments


def recording_callbacks(**facts: int) -> list[TrainerCallback]:
    """Return what records facts, steps and events, if trackside asks for it by its environment and can be imported."""
    if not os.environ.get("TRACKSIDE_DATABASE"):
        return []
    try:
        from trackside.integrations.transformers import TracksideCallback

        return [TracksideCallback(facts=facts)]
    except Exception as problem:  # noqa: BLE001 - a training is never stopped by what is recorded of it
        print(f"Steps are not recorded: {problem}", flush=True)
        return []


class ProgressLines(TrainerCallback):  # type: ignore[misc]
    """Prints step, loss and learning rate in one line each time the trainer logs."""

    def on_log(
        self, _args: TrainingArguments, state: TrainerState, _control: TrainerControl, logs: Any = None, **_: Any
    ) -> None:
        if logs and "loss" in logs:
            shown = f"loss: {float(logs['loss']):.4f} lr: {float(logs['learning_rate']):.3e}"
            more = f"grad_norm: {float(logs['grad_norm']):.3f} epoch: {float(logs['epoch']):.2f}"
            print(f"step {state.global_step}/{state.max_steps} {shown} {more}", flush=True)


class NumberedAdapters(TrainerCallback):  # type: ignore[misc]
    """Saves the adapter as one file after each of the trainer's own checkpoints, except the last."""

    def __init__(self, output: Path, name: str) -> None:
        self._output, self._name = output, name

    def on_save(
        self, _args: TrainingArguments, state: TrainerState, _control: TrainerControl, model: Any = None, **_: Any
    ) -> None:
        if state.global_step < state.max_steps:
            path = self._output / f"{self._name}-step{state.global_step:08d}.safetensors"
            save_adapter(model, path, step=state.global_step)


class AnsweredRequests(TrainerCallback):  # type: ignore[misc]
    """Saves, or saves and stops, at the end of the step in which it was asked."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self._requests.begin()

    def on_step_end(
        self, _args: TrainingArguments, _state: TrainerState, control: TrainerControl, **_: Any
    ) -> TrainerControl:
        stops = self._requests.stop is not None
        if stops or self._requests.save:
            self._requests.save = False
            control.should_save = True
            control.should_training_stop = control.should_training_stop or stops
        return control


class ResumedSchedule(TrainerCallback):  # type: ignore[misc]
    """Sets the learning rate of the step that is resumed from, where the schedule's state did not come along."""

    def on_train_begin(
        self,
        _args: TrainingArguments,
        state: TrainerState,
        _control: TrainerControl,
        optimizer: Any = None,
        lr_scheduler: Any = None,
        **_: Any,
    ) -> None:
        step = state.global_step
        rates = [full * at(step) for full, at in zip(lr_scheduler.base_lrs, lr_scheduler.lr_lambdas, strict=True)]
        lr_scheduler.load_state_dict({**lr_scheduler.state_dict(), "last_epoch": step, "_last_lr": rates})
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
