"""Trains a tiny model with Lightning and the callback, which may not wait for the GPU: `lightning_callback.py STEPS`.

A hook that waits fails, and its step is missing in the database. The database is found by the environment.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]

if importlib.util.find_spec("lightning"):
    import lightning.pytorch as lightning  # type: ignore[import-not-found, unused-ignore]
else:
    import pytorch_lightning as lightning  # type: ignore[import-not-found, unused-ignore]

from trackside.integrations.lightning import TracksideCallback


class WithoutWaiting(TracksideCallback):
    """Records, with an error in each hook that waits for the GPU."""

    def on_train_batch_start(self, *args: Any) -> None:
        _forbid_waiting()
        super().on_train_batch_start(*args)
        _allow_waiting()

    def on_train_batch_end(self, *args: Any) -> None:
        _forbid_waiting()
        super().on_train_batch_end(*args)
        _allow_waiting()


class Model(lightning.LightningModule):  # type: ignore[misc, name-defined, unused-ignore]
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 1))

    def training_step(self, batch: Any, index: int) -> Any:
        loss = self.layers(batch[0]).square().mean()
        self.log("twice", 2 * loss)
        return loss

    def configure_optimizers(self) -> Any:
        return torch.optim.AdamW(self.parameters())


def main(steps: str) -> None:
    rows = torch.utils.data.TensorDataset(torch.rand(4096, 512))
    trainer = lightning.Trainer(
        max_steps=int(steps), log_every_n_steps=5, logger=False, enable_progress_bar=False,
        enable_checkpointing=False, enable_model_summary=False, devices=1, callbacks=[WithoutWaiting()],
    )  # fmt: skip
    trainer.fit(Model(), torch.utils.data.DataLoader(rows, batch_size=64))


def _forbid_waiting() -> None:
    if torch.cuda.is_available():
        torch.cuda.set_sync_debug_mode("error")


def _allow_waiting() -> None:
    if torch.cuda.is_available():
        torch.cuda.set_sync_debug_mode("default")


if __name__ == "__main__":
    main(*sys.argv[1:])
