"""One training of a LoRA by TRL's SFTTrainer, from rows to adapter."""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import datasets
import peft
import torch
import transformers
from adapters import load_adapter, save_adapter, step_of
from callbacks import AnsweredRequests, NumberedAdapters, ProgressLines, ResumedSchedule, recording_callbacks
from checkpoints import ADAPTER, STATE, Checkpoint, newest_whole
from examples import tokenised
from loss_kernels import avoid_triton_if_it_fails
from packing import attention_wanted, keeps_rows_apart, packed_collator
from peft.helpers import disable_input_dtype_casting
from rows import find_places, find_rows
from stop_requests import Requests, leave_to_training
from streaming import Source, streamed
from trl import SFTConfig, SFTTrainer

_KEPT = 2  # checkpoints of the trainer's own: one is whole while the next is written
_LOGGED = 500  # lines at least, of a training that has so many steps
_LOGGED_AT_MOST_EVERY = 10  # steps


def train(options: argparse.Namespace, requests: Requests) -> int:
    """Train as asked and save the adapter; returns the exit status."""
    datasets.disable_progress_bars()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda":
        avoid_triton_if_it_fails()
    trainer = _trainer(options, device)
    trainer.add_callback(ProgressLines())
    trainer.add_callback(NumberedAdapters(options.output, options.name))
    trainer.add_callback(AnsweredRequests(requests))
    for callback in recording_callbacks(
        context_tokens=options.context
    ):  # last: what the others ask for and save is then known
        trainer.add_callback(callback)
    step = _train_from(trainer, _start(options, trainer))
    if step < options.steps:
        print(f"stopped as asked at step {step}", flush=True)
        return requests.exit_status
    save_adapter(trainer.model, options.output / f"{options.name}.safetensors", step=step)
    if device == "cuda":
        print(f"Peak GPU memory: {torch.cuda.max_memory_reserved() / 2**30:.1f} GiB", flush=True)
    return 0


def _start(options: argparse.Namespace, trainer: SFTTrainer) -> Checkpoint | None:
    """What to resume from: a checkpoint of an earlier try here, else the adapter that was sent, else nothing."""
    if (own := newest_whole(options.state)) is not None:
        print(f"Resuming from checkpoint {own.folder} at step {own.step}", flush=True)
        return own
    if options.resume is None:
        return None
    step = step_of(options.resume)
    print(f"Resuming from checkpoint {options.resume} at step {step}; the optimizer starts anew", flush=True)
    trainer.add_callback(ResumedSchedule())
    return _checkpoint_of(options.resume, step, options.state / "resumed", trainer)


def _checkpoint_of(adapter: Path, step: int, folder: Path, trainer: SFTTrainer) -> Checkpoint:
    """A checkpoint that holds no more than an adapter and its step, as if the trainer had written it."""
    made = Checkpoint(folder / f"checkpoint-{step}", step)
    made.folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(adapter, made.folder / ADAPTER)
    state = transformers.TrainerState(
        global_step=step,
        train_batch_size=trainer.args.per_device_train_batch_size,
        stateful_callbacks=[trainer.control],
    )
    state.compute_steps(trainer.args, trainer.args.max_steps)
    state.save_to_json(str(made.folder / STATE))
    return made


def _train_from(trainer: SFTTrainer, start: Checkpoint | None) -> int:
    """Train to the last step, or until asked to stop; returns the step that was reached."""
    if start is not None and start.step >= trainer.args.max_steps:  # the last save was the end
        load_adapter(trainer.model, start.folder / ADAPTER)
        return start.step
    # Adapters are stored in 32 bits; autocast multiplies in 16. peft would cast each input to 32 bits and back.
    with disable_input_dtype_casting(trainer.model, active=trainer.args.bf16):
        trainer.train(resume_from_checkpoint=None if start is None else str(start.folder))
    return int(trainer.state.global_step)


def _trainer(options: argparse.Namespace, device: str) -> SFTTrainer:
    print(f"Loading {options.model} on {device}", flush=True)
    tokenizer = _tokenizer(options.model)
    model = _base_model(options.model, device)
    attention = model.config._attn_implementation
    collate = packed_collator(model, tokenizer.pad_token_id) if options.packing else None
    if collate is not None and not keeps_rows_apart(model, collate):
        print(f"Packing is off: with {attention} attention this model reads across packed rows", flush=True)
        collate = None
    prepare = _rows_ahead if options.prepare == "ahead" else _rows_during
    rows = prepare(options, tokenizer, packing=collate is not None)
    print(f"Found {rows.found}; attention: {attention}", flush=True)
    trainer = _Trainer(
        model=model,
        args=_config(options, device, rows.settings),
        train_dataset=rows.dataset,
        processing_class=tokenizer,
        peft_config=_lora(options),
    )
    trainer.remove_callback(transformers.PrinterCallback)
    if collate is not None:
        trainer.data_collator = collate
    if collate is not None and options.prepare == "ahead":
        print(f"Packed them into {len(trainer.train_dataset)} rows", flush=True)
    return trainer


class _Trainer(SFTTrainer):  # type: ignore[misc]
    """TRL's, whose workers outlive a request to stop until the training has saved."""

    def get_train_dataloader(self) -> Any:
        loader = super().get_train_dataloader()
        own = getattr(loader, "base_dataloader", loader)  # accelerate wraps it
        before = own.worker_init_fn

        def begin(worker: int) -> None:
            leave_to_training()
            if before is not None:
                before(worker)

        own.worker_init_fn = begin
        return loader


class _Rows(NamedTuple):
    """The dataset as TRL takes it, with the settings that belong to it."""

    dataset: datasets.Dataset | datasets.IterableDataset
    found: str
    settings: dict[str, Any]


def _rows_ahead(options: argparse.Namespace, tokenizer: Any, *, packing: bool) -> _Rows:
    dataset = tokenised(find_rows(options.dataset), tokenizer, options.context)
    if dataset.cut:
        print(f"Truncated {dataset.cut} rows to {options.context} tokens", flush=True)
    if dataset.skipped:
        print(f"Skipped {dataset.skipped} rows: their answers begin after {options.context} tokens", flush=True)
    # Without packing there is nothing to truncate: the examples are.
    settings = {"packing": packing, "max_length": options.context if packing else None}
    return _Rows(dataset.examples, f"{len(dataset.examples)} rows of {dataset.tokens} tokens", settings)


def _rows_during(options: argparse.Namespace, tokenizer: Any, *, packing: bool) -> _Rows:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # else it warns in each worker that it is now
    source = Source(find_places(options.dataset), tokenizer, options.context, options.seed, packing)
    settings = {"packing": False, "max_length": None, "dataset_kwargs": {"skip_prepare_dataset": True}}
    found = f"{len(source.places)} rows, which are prepared while the training runs"
    return _Rows(streamed(source, options.workers), found, settings)


def _tokenizer(model: str) -> Any:
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    if tokenizer.pad_token is None:  # any will do: padding is masked
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token or tokenizer.convert_ids_to_tokens(0)
    return tokenizer


def _base_model(model: str, device: str) -> Any:
    load = transformers.AutoModelForCausalLM.from_pretrained
    precision = torch.bfloat16 if device == "cuda" else torch.float32
    try:
        loaded = load(model, dtype=precision, attn_implementation=attention_wanted(device))
    except (ValueError, ImportError) as problem:
        print(f"{problem}; using the attention that transformers chooses", flush=True)
        loaded = load(model, dtype=precision)
    return loaded.to(device)


def _lora(options: argparse.Namespace) -> peft.LoraConfig:
    return peft.LoraConfig(
        task_type="CAUSAL_LM",
        r=options.rank,
        lora_alpha=options.alpha,
        lora_dropout=options.dropout,
        target_modules="all-linear",
    )


def _config(options: argparse.Namespace, device: str, rows: dict[str, Any]) -> SFTConfig:
    return SFTConfig(
        output_dir=str(options.state),
        max_steps=options.steps,
        per_device_train_batch_size=options.batch_size,
        learning_rate=options.learning_rate,
        lr_scheduler_type=options.schedule,
        warmup_steps=options.warmup_steps,
        weight_decay=options.weight_decay,
        max_grad_norm=options.max_grad_norm,
        bf16=device == "cuda",
        use_cpu=device == "cpu",
        gradient_checkpointing=options.gradient_checkpointing,
        **rows,
        seed=options.seed,
        save_steps=options.save_every,
        save_total_limit=_KEPT,
        logging_steps=min(_LOGGED_AT_MOST_EVERY, max(1, options.steps // _LOGGED)),
        logging_nan_inf_filter=False,  # a NaN must be seen
        dataloader_pin_memory=device == "cuda",
        dataloader_num_workers=options.workers,
        disable_tqdm=True,
        report_to="none",
    )
