"""A tiny training with Lightning, under either name; prints the losses of its batches as one JSON object."""

import importlib
import json
import os
import signal
import sys
import time

import torch

ASKED = {
    "package": "lightning.pytorch",
    "steps": 12,
    "accumulate": 1,
    "resume": None,
    "kill_at": None,
    "fail_at": None,
    "processes": 1,
    "manual": False,
}
ASKED.update(json.loads(sys.argv[1]))
pl = importlib.import_module(ASKED["package"])
callbacks = importlib.import_module(ASKED["package"] + ".callbacks")

from trackside.integrations.lightning import TracksideCallback  # noqa: E402


class Line(pl.LightningModule):
    def __init__(self, rate=0.1):
        super().__init__()
        self.save_hyperparameters()
        self.layer = torch.nn.Linear(3, 1)
        self.automatic_optimization = not ASKED["manual"]
        self.losses = []

    def training_step(self, batch, index):
        x, y = batch
        loss = ((self.layer(x) - y) ** 2).mean()
        self.losses.append(loss.item())
        if len(self.losses) == ASKED["fail_at"]:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        time.sleep(0.005)
        self.log("train_loss", loss)
        self.log("twice", 2 * loss)
        if ASKED["manual"]:
            self.optimizers().zero_grad()
            self.manual_backward(loss)
            self.optimizers().step()
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        self.log("val_loss", ((self.layer(x) - y) ** 2).mean())

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=self.hparams.rate)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class Kill(pl.Callback):
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.global_step == ASKED["kill_at"]:
            os.kill(os.getpid(), signal.SIGKILL)


def main():
    pl.seed_everything(1)
    points = torch.utils.data.TensorDataset(torch.rand(16, 3), torch.rand(16, 1))
    loader = torch.utils.data.DataLoader(points, batch_size=2)
    trainer = pl.Trainer(
        accelerator="cpu",
        devices=ASKED["processes"],
        strategy="ddp" if ASKED["processes"] > 1 else "auto",
        max_steps=ASKED["steps"],
        accumulate_grad_batches=1 if ASKED["manual"] else ASKED["accumulate"],
        log_every_n_steps=4,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[TracksideCallback(), Kill(), callbacks.ModelCheckpoint(dirpath="saved", every_n_train_steps=6)],
    )
    model, started = Line(), time.time()
    trainer.fit(model, loader, loader, ckpt_path=ASKED["resume"])
    if trainer.is_global_zero:
        print(json.dumps({"losses": model.losses, "seconds": time.time() - started}))


main()
