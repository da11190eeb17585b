"""Values find their column, whatever a script calls them."""

from __future__ import annotations

from typing import Any

import pytest

from trackside.integrations.metric_names import step_values, without_arguments


@pytest.mark.parametrize(
    ("logged", "columns", "more"),
    [
        ({"loss": 0.5, "lr": 0.1}, (0.5, 0.1, None, None), {}),
        ({"train_loss": 0.5}, (0.5, None, None, None), {}),
        (
            {"loss/current": 0.5, "loss/average": 0.6, "lr/textencoder": 1e-5, "lr/unet": 1e-4, "lr/d*lr/unet": 3.0},
            (0.5, 1e-4, None, None),
            {"loss/average": 0.6, "lr/textencoder": 1e-5, "lr/d*lr/unet": 3.0},
        ),
        ({"avg_loss": 0.6, "lr/group3": 1e-4}, (0.6, 1e-4, None, None), {}),
        ({"avr_loss": 0.6, "norm/avg_grad_norm": 2.0}, (0.6, None, 2.0, None), {}),
        ({"train/loss": 0.5, "train/grad_norm": 2.0, "train/batch_size": 4}, (0.5, None, 2.0, 4), {}),
        ({"loss": 0.5, "train_loss": 0.7}, (0.5, None, None, None), {"train_loss": 0.7}),
        ({"lr-AdamW": 1e-4, "val_loss": 0.4}, (None, 1e-4, None, None), {"val_loss": 0.4}),
        ({"lr/d*lr/unet": 3.0}, (None, None, None, None), {"lr/d*lr/unet": 3.0}),
    ],
)
def test_values_go_into_their_columns(logged: dict[str, Any], columns: tuple[Any, ...], more: dict[str, Any]) -> None:
    found = step_values(logged)
    assert (found.loss, found.lr, found.grad_norm, found.batch_size) == columns
    assert found.more == more


def test_an_epoch_or_a_validation_is_no_step() -> None:
    assert not step_values({"loss/epoch_average": 0.5, "val_loss": 0.4, "batch_size": 2}).is_step
    assert step_values({"loss": 0.5}).is_step


def test_values_named_like_an_argument_get_another_name() -> None:
    assert without_arguments({"step": 7, "at": 1.0, "step_time": 0.1, "mae": 2.0}) == {
        "logged_at": 1.0,
        "logged_step_time": 0.1,
        "mae": 2.0,
    }
