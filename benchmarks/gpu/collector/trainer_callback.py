"""Trains a tiny random model with the Trainer of transformers and the callback: `trainer_callback.py FOLDER STEPS`.

The database is found by the environment, as on a rented machine.
"""

from __future__ import annotations

import sys

import torch  # type: ignore[import-not-found, unused-ignore]
import transformers  # type: ignore[import-not-found, unused-ignore]

from trackside.integrations.transformers import TracksideCallback  # type: ignore[import-untyped, unused-ignore]


def main(folder: str, steps: str) -> None:
    config = transformers.GPT2Config(vocab_size=1000, n_positions=128, n_embd=128, n_layer=2, n_head=4)
    rows = [{"input_ids": torch.randint(1000, (128,))} for _ in range(64)]
    for row in rows:
        row["labels"] = row["input_ids"]
    arguments = transformers.TrainingArguments(
        output_dir=folder, max_steps=int(steps), per_device_train_batch_size=8, logging_steps=1, save_steps=int(steps),
        report_to=[], disable_tqdm=True,
    )  # fmt: skip
    transformers.Trainer(
        model=transformers.GPT2LMHeadModel(config), args=arguments, train_dataset=rows, callbacks=[TracksideCallback()]
    ).train()


if __name__ == "__main__":
    main(*sys.argv[1:])
