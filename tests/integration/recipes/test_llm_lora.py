"""llm-lora@1, which stays for retries: transformers and peft train a tiny random model on the CPU, in a venv."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from stationmaster.delivery.safetensors_header import open_safetensors
from stationmaster.model import Outcome
from stationmaster.recipes.places import BUILTIN
from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.submitting import submit

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

#: Gigabytes of CUDA that nothing here uses are saved by a build without it: set this variable to such a version, and
#: PIP_EXTRA_INDEX_URL to where it can be had.
TORCH = os.environ.get("STATIONMASTER_TEST_TORCH", "torch")
PACKAGES = ["transformers>=4.56", "peft>=0.17", "safetensors", "numpy"]
STEPS = 12

MAKE_MODEL = """
import sys
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
import torch, transformers

tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
words = trainers.WordLevelTrainer(special_tokens=["[UNK]", "[EOS]"])
tokenizer.train_from_iterator(["the train leaves at noon", "a signal turns green", "question answer"], words)
fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", eos_token="[EOS]")
fast.save_pretrained(sys.argv[1])
torch.manual_seed(1)
config = transformers.LlamaConfig(
    vocab_size=len(fast), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=128,
)
transformers.LlamaForCausalLM(config).save_pretrained(sys.argv[1])
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python with what the recipe's bootstrap would install."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip: list[str | Path] = [folder / "bin" / "python", "-m", "pip", "install", "-q", "--no-compile"]
    subprocess.run([*pip, TORCH, *PACKAGES], check=True)
    return str(folder / "bin" / "python")


@pytest.fixture(scope="module")
def base_model(python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    subprocess.run([python, "-c", MAKE_MODEL, folder], check=True)
    return folder


@pytest.fixture
def world(tmp_path: Path) -> Iterator[LocalWorld]:
    """The shipped recipe, word for word, but for the GPU that this computer may lack."""
    recipe = tmp_path / "recipes" / "llm-lora"
    shutil.copytree(BUILTIN / "llm-lora@1", recipe)
    text = (recipe / "recipe.yaml").read_text(encoding="utf-8")
    needs = "  gpus: 1\n  vram_gib: 22\n  disk_gib: 60\n"
    assert needs in text
    (recipe / "recipe.yaml").write_text(text.replace(needs, "  gpus: 0\n  disk_gib: 1\n"), encoding="utf-8")
    with LocalWorld(tmp_path, STATIONMASTER_RECIPES=str(tmp_path / "recipes")) as opened:
        opened.patience_seconds = 600.0
        yield opened


def write_rows(folder: Path) -> Path:
    folder.mkdir()
    answers = ("the train leaves at noon", "a signal turns green")
    rows = [{"prompt": f"question {number}", "completion": answers[number % 2]} for number in range(16)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def test_a_language_model_is_adapted_and_can_be_gone_on_with(
    world: LocalWorld, python: str, base_model: Path, tmp_path: Path
) -> None:
    rows = write_rows(tmp_path / "rows")
    parameters = {
        "base_model": str(base_model), "python": python, "steps": STEPS, "save_every": 5, "warmup_steps": 1,
        "learning_rate": 0.05, "rank": 4, "alpha": 8, "lora_dropout": 0, "context": 32, "gradient_checkpointing": True,
    }  # fmt: skip
    request = replace(world.request(rows, name="my words"), recipe="llm-lora@1", parameters=parameters)
    preview = world.station.proposals.check(request)
    assert (preview.images, preview.rows) == (0, 16)
    job_id = submit(world.station, request).job.id
    world.work_until_ended(job_id)
    view = world.station.jobs.view(job_id)
    assert view.job.outcome is Outcome.COMPLETED, view.job.explanation
    assert (view.job.progress.step, view.job.progress.total_steps) == (STEPS, STEPS)
    losses = [reading.loss for reading in world.station.readings.of_job(job_id) if reading.loss is not None]
    assert losses[-1] < losses[0], "nothing was learned"
    model = Path(view.job.model.address or "")
    opened = open_safetensors(model)
    assert (opened.step, opened.has_nan) == (STEPS, False)
    config = json.loads((model.parent / "adapter_config.json").read_text(encoding="utf-8"))
    assert (config["r"], config["lora_alpha"]) == (4, 8)

    script = [python, BUILTIN / "llm-lora@1" / "train.py", "--dataset", rows, "--model", base_model]
    script += ["--output", tmp_path / "on", "--rank", "4", "--alpha", "8", "--resume", model, "--steps", str(STEPS + 2)]
    gone_on = subprocess.run([str(word) for word in script], capture_output=True, text=True, check=True)
    assert f"step {STEPS + 1}/{STEPS + 2} loss" in gone_on.stdout
    assert f"step {STEPS}/" not in gone_on.stdout
    assert open_safetensors(tmp_path / "on" / "adapter.safetensors").step == STEPS + 2
