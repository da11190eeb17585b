"""A tiny training with the Trainer of transformers; prints what the Trainer logged as one JSON object."""

import json
import os
import signal
import sys
import time

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments

from trackside.integrations.transformers import TracksideCallback

ASKED = {"steps": 12, "accumulate": 1, "resume": None, "kill_at": None, "fail_at": None, "arguments": {}}
ASKED.update(json.loads(sys.argv[1]))


class Line(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(3))
        self.batches = 0

    def forward(self, x, labels):
        self.batches += 1
        if self.batches == ASKED["fail_at"]:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        if self.training:
            time.sleep(0.005)
        return {"loss": ((x @ self.weight - labels) ** 2).mean()}


class Points(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        x = torch.tensor([1.0, index / 16, (index / 16) ** 2])
        return {"x": x, "labels": x.sum()}


class SlowSaves(Trainer):
    def save_model(self, *args, **kwargs):
        time.sleep(0.2)
        super().save_model(*args, **kwargs)


class Kill(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == ASKED["kill_at"]:
            os.kill(os.getpid(), signal.SIGKILL)


def main():
    torch.manual_seed(1)
    arguments = TrainingArguments(
        output_dir="out",
        max_steps=ASKED["steps"],
        per_device_train_batch_size=2,
        gradient_accumulation_steps=ASKED["accumulate"],
        learning_rate=0.1,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        **{"logging_steps": 1, "save_strategy": "no", **ASKED["arguments"]},
    )
    trainer = SlowSaves(
        model=Line(),
        args=arguments,
        train_dataset=Points(),
        eval_dataset=Points(),
        callbacks=[Kill(), TracksideCallback(facts={"context_tokens": 64})],
    )
    started = time.time()
    trainer.train(resume_from_checkpoint=ASKED["resume"])
    if trainer.is_world_process_zero():
        print(json.dumps({"logged": trainer.state.log_history, "seconds": time.time() - started}))


main()
