"""Which of the values that a script logs belong in the columns of StepMetric; scripts name them differently."""

from __future__ import annotations

from typing import Any, Dict, Mapping, NamedTuple, Optional

#: Names of each column's value, the preferred one first.
_LOSS = (
    "loss", "train_loss", "train/loss", "loss/train", "loss/current", "loss_step", "train_loss_step",
    "train/loss_step", "step_loss", "avg_loss", "avr_loss", "loss/average",
)  # fmt: skip
_LEARNING_RATE = ("learning_rate", "lr", "train/learning_rate", "train/lr", "lr/unet", "lr/group0")
_GRADIENT_NORM = (
    "grad_norm", "gradient_norm", "train/grad_norm", "grad_norm/total", "total_norm", "norm/avg_grad_norm",
    "grad_2.0_norm_total",
)  # fmt: skip
_BATCH_SIZE = ("batch_size", "train/batch_size")
#: Names of arguments of `Run.step` and `Run.values`.
_ARGUMENTS = ("self", "loss", "lr", "grad_norm", "batch_size", "at", "step_time")


class StepValues(NamedTuple):
    """One step's logged values by column; `more` has those that StepMetric has no column for."""

    loss: Any
    lr: Any
    grad_norm: Any
    batch_size: Any
    more: Dict[str, Any]

    @property
    def is_step(self) -> bool:
        """Whether these values describe a training step, and not only an epoch or a validation."""
        return not (self.loss is None and self.lr is None and self.grad_norm is None)


def step_values(logged: Mapping[str, Any]) -> StepValues:
    """Return the logged values by column.

    >>> step_values({"loss/current": 0.2, "loss/average": 0.3, "lr/unet": 1e-4})
    StepValues(loss=0.2, lr=0.0001, grad_norm=None, batch_size=None, more={'loss/average': 0.3})
    """
    more = dict(logged)
    loss = _take(more, _first(_LOSS, more))
    lr = _take(more, _first(_LEARNING_RATE, more) or _learning_rate_of_a_group(more))
    grad_norm = _take(more, _first(_GRADIENT_NORM, more))
    batch_size = _take(more, _first(_BATCH_SIZE, more))
    return StepValues(loss, lr, grad_norm, batch_size, without_arguments(more))


def without_arguments(logged: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the values under names that a `Run` stores as they are; a step's number is no value of it."""
    return {"logged_" + name if name in _ARGUMENTS else name: logged[name] for name in logged if name != "step"}


def _first(names: tuple[str, ...], logged: Mapping[str, Any]) -> Optional[str]:
    return next((name for name in names if name in logged), None)


def _learning_rate_of_a_group(logged: Mapping[str, Any]) -> Optional[str]:
    # "lr/d*lr/unet" is the step size that Prodigy and D-Adaptation chose, beside the rate that was set.
    return next((name for name in logged if name.startswith(("lr/", "lr-")) and "d*lr" not in name), None)


def _take(logged: Dict[str, Any], name: Optional[str]) -> Any:
    return None if name is None else logged.pop(name)
