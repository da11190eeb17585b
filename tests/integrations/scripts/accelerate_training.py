"""A tiny training with accelerate; prints the losses that the script logged as one JSON object."""

import json
import os
import signal
import sys
import time

import torch
from accelerate import Accelerator

from trackside.integrations.accelerate import TracksideTracker

ASKED = {"steps": 12, "accumulate": 1, "first": 0, "kill_at": None, "fail_at": None}
ASKED.update(json.loads(sys.argv[1]))


def main():
    torch.manual_seed(1)
    accelerator = Accelerator(cpu=True, log_with=TracksideTracker(), gradient_accumulation_steps=ASKED["accumulate"])
    accelerator.init_trackers("tiny", config={"learning_rate": 0.05, "optimizer": "SGD"})
    model = torch.nn.Linear(3, 1)
    points = torch.utils.data.TensorDataset(torch.rand(64, 3), torch.rand(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loader = torch.utils.data.DataLoader(points, batch_size=2)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    step, losses, started = ASKED["first"], [], time.time()
    while step < ASKED["steps"]:
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = ((model(x) - y) ** 2).mean()
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
                time.sleep(0.005)
            if not accelerator.sync_gradients:
                continue
            step += 1
            if step == ASKED["fail_at"]:
                raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
            losses.append(loss.item())
            accelerator.log(
                {"train_loss": loss.detach(), "lr/unet": 0.05, "lr/text": 0.01, "norm": step / 2}, step=step
            )
            if step == ASKED["kill_at"]:
                os.kill(os.getpid(), signal.SIGKILL)
            if step >= ASKED["steps"]:
                break
        accelerator.log({"loss/epoch_average": sum(losses) / len(losses)}, step=1)
    seconds = time.time() - started
    if accelerator.is_main_process:
        print(json.dumps({"losses": losses, "seconds": seconds}))
    accelerator.end_training()


main()
