"""Both versions of llm-lora on the same GPU, model shape, rows and settings: one JSON line for each run.

python3 benchmarks/gpu/llm_lora.py [--shape 181M] [--trial]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

RECIPES = Path(__file__).parents[2] / "src" / "stationmaster" / "recipes" / "builtin"
BATCH_SIZE, CONTEXT, RANK = 4, 1024, 16
WARMUP = 5  # steps that are not counted
SAMPLED_EVERY_MS = 200
WORDS = 5_000

_STEP = re.compile(r"step (\d+)/\d+ loss: (\S+)")
_PACKED = re.compile(r"Packed them into (\d+) rows")

MAKE_MODEL = """
import json, sys, torch, transformers
from tokenizers import Tokenizer, models, pre_tokenizers

folder, shape, words = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
known = {"[UNK]": 0, "[EOS]": 1, **{f"w{number}": 2 + number for number in range(words)}}
tokenizer = Tokenizer(models.WordLevel(known, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
transformers.PreTrainedTokenizerFast(
    tokenizer_object=tokenizer, unk_token="[UNK]", eos_token="[EOS]").save_pretrained(folder)
torch.manual_seed(1)
torch.set_default_dtype(torch.bfloat16)
config = transformers.AutoConfig.for_model(**shape, bos_token_id=None, eos_token_id=1)
with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
model.save_pretrained(folder)
print(sum(weight.numel() for weight in model.parameters()))
"""

SHAPES = {
    "181M": {
        "model_type": "llama", "vocab_size": 32_000, "hidden_size": 1_024, "intermediate_size": 2_816,
        "num_hidden_layers": 9, "num_attention_heads": 16, "num_key_value_heads": 16, "tie_word_embeddings": False,
    },
    "1.5B": {  # the sizes of Qwen2.5-1.5B; a Llama, whose tokenizer may be any
        "model_type": "llama", "vocab_size": 151_936, "hidden_size": 1_536, "intermediate_size": 8_960,
        "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2, "tie_word_embeddings": True,
    },
    "tiny": {
        "model_type": "llama", "vocab_size": 6_000, "hidden_size": 32, "intermediate_size": 64,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "tie_word_embeddings": False,
    },
}  # fmt: skip


FIRST, UNPACKED, PACKED = "llm-lora@1", "llm-lora@2 without packing", "llm-lora@2"
VARIANTS = {
    FIRST: ("llm-lora@1", ()),
    UNPACKED: ("llm-lora", ("--schedule=constant_with_warmup",)),
    PACKED: ("llm-lora", ("--schedule=constant_with_warmup", "--packing")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One model shape with one dataset; each variant trains it."""

    shape: str
    rows: int
    steps: int
    variants: tuple[str, ...] = (FIRST, UNPACKED, PACKED)


CASES = (
    Case(shape="181M", rows=5_000, steps=45),
    Case(shape="181M", rows=50_000, steps=30, variants=(FIRST, PACKED)),
    Case(shape="1.5B", rows=5_000, steps=25),
)
TRIAL = (Case(shape="tiny", rows=200, steps=8),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A dataset on disk, and how many tokens its rows have within the context."""

    folder: Path
    count: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUse:
    """GPU use that the driver reported while the counted steps ran; None if it was not measured."""

    busy_share: float | None
    peak_mib: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One run of one recipe."""

    recipe: str
    shape: str
    rows: int
    steps: int
    exit_code: int
    seconds_per_step: float | None
    real_tokens_per_step: float | None
    real_tokens_per_second: float | None
    gpu_busy_share: float | None
    peak_gpu_mib: float | None
    last_loss: float | None
    seconds_to_first_step: float | None
    seconds_in_all: float


def main(arguments: list[str]) -> int:
    """Run every case with every recipe; returns 1 if one of them failed."""
    options = _parser().parse_args(arguments)
    failed = False
    with tempfile.TemporaryDirectory(prefix="llm-lora-", dir=options.scratch) as scratch:
        for case in TRIAL if options.trial else CASES:
            if options.shape and case.shape != options.shape:
                continue
            model = _model(Path(scratch), case.shape)
            rows = _rows(Path(scratch), case.rows)
            for variant in case.variants:
                result = _run(variant, case, model=model, rows=rows, scratch=Path(scratch))
                print(json.dumps(asdict(result)), flush=True)
                failed = failed or result.exit_code != 0
    return 1 if failed else 0


def _model(scratch: Path, shape: str) -> Path:
    folder = scratch / f"model-{shape}"
    if not folder.exists():
        command = [sys.executable, "-c", MAKE_MODEL, str(folder), json.dumps(SHAPES[shape]), str(WORDS)]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=_environment())
        print(f"made a random model of {int(done.stdout.split()[-1]):,} parameters", file=sys.stderr, flush=True)
    return folder


def _rows(scratch: Path, count: int) -> Rows:
    """Prompts with completions, mostly short: some 50 to 1,000 tokens, 300 on average."""
    folder, chance, tokens = scratch / f"rows-{count}", random.Random(7), 0
    folder.mkdir(exist_ok=True)
    with (folder / "rows.jsonl").open("w", encoding="utf-8") as file:
        for _ in range(count):
            asked, answered = chance.randint(10, 100), min(900, 30 + int(chance.expovariate(1 / 220)))
            said = chance.choices(range(WORDS), k=asked + answered)
            prompt, completion = (" ".join(f"w{word}" for word in part) for part in (said[:asked], said[asked:]))
            file.write(json.dumps({"prompt": prompt, "completion": completion}) + "\n")
            tokens += asked + answered + 1  # and the mark of its end
    return Rows(folder=folder, count=count, tokens=tokens)


def _run(variant: str, case: Case, *, model: Path, rows: Rows, scratch: Path) -> Result:
    folder, more = VARIANTS[variant]
    command = [sys.executable, str(RECIPES / folder / "train.py"), f"--dataset={rows.folder}", f"--model={model}"]
    command += [f"--steps={case.steps}", f"--batch-size={BATCH_SIZE}", f"--context={CONTEXT}", f"--rank={RANK}"]
    command += ["--gradient-checkpointing", "--save-every=1000000", f"--output={scratch / 'output'}", *more]
    if folder != "llm-lora@1":
        command.append(f"--state={scratch / 'state'}")
    log: list[tuple[float, str]] = []
    begun = time.monotonic()
    with _watched_gpu() as samples:
        code = _log_of(command, log)
    for left in ("output", "state"):
        shutil.rmtree(scratch / left, ignore_errors=True)
    if code:
        print("".join(line for _, line in log[-30:]), file=sys.stderr, flush=True)
    return _result(variant, case, rows, log, samples, code=code, begun=begun)


def _log_of(command: list[str], log: list[tuple[float, str]]) -> int:
    """Run it to its end; returns each line of its log with the time at which it came."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, text=True, env=_environment(), **streams) as process:  # type: ignore[call-overload]
        for line in process.stdout:
            log.append((time.monotonic(), line))
    return int(process.returncode)


def _result(
    variant: str,
    case: Case,
    rows: Rows,
    log: list[tuple[float, str]],
    samples: list[tuple[float, float, float]],
    *,
    code: int,
    begun: float,
) -> Result:
    steps = [(at, int(found[1]), float(found[2])) for at, line in log if (found := _STEP.search(line))]
    counted = [(at, step) for at, step, _ in steps if step >= WARMUP]
    per_step = None
    use = GpuUse(busy_share=None, peak_mib=max((used for _, _, used in samples), default=None))
    if len(counted) > 1:
        (first_at, first), (last_at, last) = counted[0], counted[-1]
        per_step = (last_at - first_at) / (last - first)
        busy = [share for at, share, _ in samples if first_at <= at <= last_at]
        use = GpuUse(busy_share=sum(busy) / len(busy) if busy else None, peak_mib=use.peak_mib)
    packs = next((int(found[1]) for _, line in log if (found := _PACKED.search(line))), rows.count)
    tokens = BATCH_SIZE * rows.tokens / packs
    return Result(
        recipe=variant,
        shape=case.shape,
        rows=case.rows,
        steps=case.steps,
        exit_code=code,
        seconds_per_step=_rounded(per_step, 4),
        real_tokens_per_step=_rounded(tokens, 1),
        real_tokens_per_second=_rounded(tokens / per_step, 1) if per_step else None,
        gpu_busy_share=_rounded(use.busy_share, 3),
        peak_gpu_mib=use.peak_mib,
        last_loss=steps[-1][2] if steps else None,
        seconds_to_first_step=_rounded(steps[0][0] - begun, 1) if steps else None,
        seconds_in_all=round(time.monotonic() - begun, 1),
    )


@contextmanager
def _watched_gpu() -> Iterator[list[tuple[float, float, float]]]:
    """Collect times with the GPU's utilisation and memory in use; none if there is no nvidia-smi."""
    samples: list[tuple[float, float, float]] = []
    if shutil.which("nvidia-smi") is None:
        yield samples
        return
    command = ["nvidia-smi", "--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits"]
    with subprocess.Popen(
        [*command, "--id=0", f"--loop-ms={SAMPLED_EVERY_MS}"], stdout=subprocess.PIPE, text=True
    ) as smi:
        reader = threading.Thread(target=_read_samples, args=(smi, samples), daemon=True)
        reader.start()
        try:
            yield samples
        finally:
            smi.terminate()
            reader.join(10)


def _read_samples(smi: subprocess.Popen[str], samples: list[tuple[float, float, float]]) -> None:
    assert smi.stdout is not None
    for line in smi.stdout:
        busy, _, used = line.partition(",")
        if busy.strip().isdigit() and used.strip().isdigit():
            samples.append((time.monotonic(), int(busy) / 100, float(used)))


def _environment() -> dict[str, str]:
    offline = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    return {**os.environ, **offline, "PYTHONUNBUFFERED": "1", "TQDM_DISABLE": "1"}


def _rounded(value: float | None, places: int) -> float | None:
    return None if value is None else round(value, places)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--shape", choices=[case.shape for case in CASES], help="only this model")
    parser.add_argument("--trial", action="store_true", help="a tiny model for a few steps, to try the script itself")
    parser.add_argument("--scratch", type=Path, help="where models and rows are made: some 4 GB")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
