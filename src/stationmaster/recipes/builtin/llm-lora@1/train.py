"""Train a LoRA of a causal language model on JSON lines: python3 train.py --dataset DIR --output DIR --model NAME …"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
from pathlib import Path
from typing import Any

import peft
import torch
import transformers
from rows import find_rows, tokenised
from safetensors import safe_open
from safetensors.torch import save_file


def main(arguments: list[str]) -> int:
    """Train as the command line says; returns the exit status."""
    options = _parser().parse_args(arguments)
    asked: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _frame: asked.append(received))
    training = Training(options)
    while training.step < options.steps and not asked:
        training.take_step()
    if asked:
        training.save_numbered()
        print("stopped as asked", flush=True)
        return 128 + asked[0]
    training.save(options.output / f"{options.name}.safetensors")
    return 0


class Training:
    """One run over one dataset."""

    def __init__(self, options: argparse.Namespace) -> None:
        torch.manual_seed(options.seed)
        self.options, self.step = options, 0
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        print(f"Loading {options.model} on {self.device}", flush=True)
        tokenizer = transformers.AutoTokenizer.from_pretrained(options.model)
        rows = find_rows(options.dataset)
        self.examples = [tokenised(row, tokenizer, options.context) for row in rows]
        print(f"Found {len(self.examples)} rows", flush=True)
        self.padding = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id or 0
        self.model = self._adapted_model()
        if options.resume:
            self._go_on_from(options.resume)
        weights = [weight for weight in self.model.parameters() if weight.requires_grad]
        self.optimizer = torch.optim.AdamW(weights, lr=options.learning_rate)

    def take_step(self) -> None:
        options = self.options
        self.model.train()
        for group in self.optimizer.param_groups:
            group["lr"] = options.learning_rate * min(1.0, (self.step + 1) / max(1, options.warmup_steps))
        batch = self._batch()
        loss = self.model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1
        lr = self.optimizer.param_groups[0]["lr"]
        print(f"step {self.step}/{options.steps} loss: {loss.item():.4f} lr: {lr:.3e}", flush=True)
        if self.step % options.save_every == 0 and self.step < options.steps:
            self.save_numbered()

    def save_numbered(self) -> None:
        if self.step:
            self.save(self.options.output / f"{self.options.name}-step{self.step:08d}.safetensors")

    def save(self, path: Path) -> None:
        """The adapter alone, put in place in one go; its header says how to use it and where to go on."""
        path.parent.mkdir(parents=True, exist_ok=True)
        tensors = {
            name: tensor.detach().to("cpu", torch.float32).contiguous()
            for name, tensor in peft.get_peft_model_state_dict(self.model).items()
        }
        settings = self.model.peft_config["default"].to_dict()
        config = json.dumps(settings, default=lambda value: sorted(value) if isinstance(value, set) else str(value))
        metadata = {"format": "pt", "training_info": json.dumps({"step": self.step}), "adapter_config": config}
        fresh = path.with_name(f".{path.name}.new")
        save_file(tensors, fresh, metadata)
        fresh.replace(path)
        (path.parent / "adapter_config.json").write_text(config + "\n", encoding="utf-8")
        print(f"saving checkpoint: {path}", flush=True)

    def _adapted_model(self) -> Any:
        options = self.options
        wide = torch.bfloat16 if self.device == "cuda" else torch.float32
        base = transformers.AutoModelForCausalLM.from_pretrained(options.model, dtype=wide)
        if options.gradient_checkpointing:
            base.config.use_cache = False
            base.gradient_checkpointing_enable()
            base.enable_input_require_grads()
        lora = peft.LoraConfig(
            task_type="CAUSAL_LM",
            r=options.rank,
            lora_alpha=options.alpha,
            lora_dropout=options.dropout,
            target_modules="all-linear",
        )
        return peft.get_peft_model(base, lora).to(self.device)

    def _go_on_from(self, checkpoint: Path) -> None:
        with safe_open(checkpoint, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
            self.step = int(json.loads(file.metadata()["training_info"])["step"])
        peft.set_peft_model_state_dict(self.model, tensors)
        print(f"Resuming from checkpoint {checkpoint} at step {self.step}", flush=True)

    def _batch(self) -> dict[str, torch.Tensor]:
        """The rows of this step: each epoch in an order of its own, the same in every run with the same seed."""
        size, count = self.options.batch_size, len(self.examples)
        chosen = [self._example(self.step * size + place, count) for place in range(size)]
        longest = max(len(tokens) for tokens, _ in chosen)
        tokens = [[*each, *[self.padding] * (longest - len(each))] for each, _ in chosen]
        labels = [[*each, *[-100] * (longest - len(each))] for _, each in chosen]
        mask = [[1] * len(each) + [0] * (longest - len(each)) for each, _ in chosen]
        named = {"input_ids": tokens, "labels": labels, "attention_mask": mask}
        return {name: torch.tensor(values, device=self.device) for name, values in named.items()}

    def _example(self, number: int, count: int) -> tuple[list[int], list[int]]:
        epoch, place = divmod(number, count)
        order = list(range(count))
        random.Random(f"{self.options.seed}.{epoch}").shuffle(order)
        return self.examples[order[place]]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--dataset", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--name", default="adapter")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--learning-rate", type=float, default=2e-4)
    parser.add_argument("--warmup-steps", type=int, default=20)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--alpha", type=int, default=32)
    parser.add_argument("--dropout", type=float, default=0.05)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--save-every", type=int, default=250)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--gradient-checkpointing", action="store_true")
    parser.add_argument("--resume", type=Path, metavar="CHECKPOINT")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
