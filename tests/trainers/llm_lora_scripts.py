"""Programs for the Python that has TRL: a tiny random model, and looks into what the recipe's scripts make of rows."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from stationmaster.recipes.places import BUILTIN

SCRIPTS = BUILTIN / "llm-lora"
QUIET = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "TQDM_DISABLE": "1", "PYTHONDONTWRITEBYTECODE": "1"}

#: A folder with a Llama of two layers and a tokenizer that knows single characters.
MAKE_MODEL = """
import string, sys, torch, transformers
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

known = {name: number for number, name in enumerate(["<pad>", "</s>", "<unk>", *string.printable])}
tokenizer = Tokenizer(models.WordLevel(known, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("[\\\\s\\\\S]"), "isolated")
tokenizer.decoder = decoders.Fuse()
fast = transformers.PreTrainedTokenizerFast(
    tokenizer_object=tokenizer, unk_token="<unk>", eos_token="</s>", pad_token="<pad>")
fast.save_pretrained(sys.argv[1])
torch.manual_seed(1)
config = transformers.LlamaConfig(
    vocab_size=len(fast), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=512, bos_token_id=None, eos_token_id=1, pad_token_id=0,
    initializer_range=0.3)  # large, so that there is something to adapt
transformers.LlamaForCausalLM(config).save_pretrained(sys.argv[1])
"""

#: What is learned of each row of a dataset, as text, with ▁ for each token that is not; one list for each template.
SHOW_LEARNED = """
import json, sys
from pathlib import Path
from examples import IGNORED, ExampleMaker
from rows import find_rows
from transformers import AutoTokenizer

shown = []
for template in json.loads(sys.argv[3]):
    tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
    tokenizer.chat_template = template
    rows = list(find_rows(Path(sys.argv[2])))
    shown.append([
        ["".join(tokenizer.convert_ids_to_tokens(each.tokens)),
         "".join("▁" if label == IGNORED else tokenizer.convert_ids_to_tokens(label) for label in each.labels)]
        for each in ExampleMaker(tokenizer).examples(rows)])
print(json.dumps(shown))
"""

#: The loss of one packed row, before and after its neighbour in the same pack is changed, by the trainer itself.
CHANGE_NEIGHBOUR = """
import json, sys
import torch
import train, training

options = train._parser().parse_args(sys.argv[1:])
trainer = training._trainer(options, "cpu")
trainer.model.eval()
for weight in trainer.model.parameters():  # an adapter that does something
    if weight.requires_grad:
        torch.nn.init.normal_(weight, std=0.2, generator=torch.Generator().manual_seed(3))

def losses(neighbour):
    learned = [*range(20, 40)]
    pack = {"input_ids": [*neighbour, *learned], "labels": [-100] * 20 + learned, "seq_lengths": [20, 20]}
    other = {"input_ids": [*range(50, 80)], "labels": [-100] * 30, "seq_lengths": [30]}
    batch = trainer.data_collator([pack, other])
    apart = float(trainer.compute_loss(trainer.model, dict(batch)))
    together = {**batch, "position_ids": torch.arange(batch["input_ids"].shape[1]).expand_as(batch["input_ids"])}
    return apart, float(trainer.compute_loss(trainer.model, together))

alone = trainer.data_collator([{"input_ids": [*range(20, 40)], "labels": [*range(20, 40)], "seq_lengths": [20]}])
(first, mixed_first), (second, mixed_second) = losses(range(5, 25)), losses(range(60, 80))
print(json.dumps({
    "alone": float(trainer.compute_loss(trainer.model, alone)),
    "apart": [first, second], "together": [mixed_first, mixed_second]}))
"""

#: Whether the probe lets packing pass: for the tiny Llama, and for a state-space model, which carries a state along.
PROBE_MODELS = """
import json, sys
import torch, transformers
from packing import keeps_rows_apart, packed_collator

torch.manual_seed(1)
llama = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1])
mamba = transformers.MambaForCausalLM(transformers.MambaConfig(
    vocab_size=64, hidden_size=32, state_size=8, num_hidden_layers=2, pad_token_id=0, bos_token_id=0, eos_token_id=1))
eager = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1], attn_implementation="eager")
models = {"llama": llama, "llama, eager": eager, "mamba": mamba}
print(json.dumps({name: keeps_rows_apart(model, packed_collator(model, 0)) for name, model in models.items()}))
"""

TRAIN = "import sys, train; sys.exit(train.main(sys.argv[1:]))"

#: What the loader of `--prepare=during` gives: the rows of one pass by each number of workers, and packs of them.
STREAM_ROWS = """
import json, sys
from collections import Counter
from itertools import islice
from pathlib import Path
from rows import find_places
from streaming import Source, streamed
from torch.utils.data import DataLoader
from transformers import AutoTokenizer

tokenizer, places = AutoTokenizer.from_pretrained(sys.argv[1]), find_places(Path(sys.argv[2]))

def stream(workers, packing, seed=1, context=64):
    rows = streamed(Source(places, tokenizer, context, seed, packing), workers)
    return DataLoader(rows, batch_size=None, num_workers=workers, collate_fn=dict)

def texts(workers, number, **more):
    return ["".join(tokenizer.convert_ids_to_tokens(each["input_ids"]))
            for each in islice(stream(workers, False, **more), number)]

packs = list(islice(stream(2, True), 40))
print(json.dumps({
    "alone": texts(0, 2 * len(places)), "again": texts(0, 2 * len(places)), "other seed": texts(0, len(places), seed=2),
    "by two": texts(2, len(places)),
    "packs": [[sum(each["seq_lengths"]), len(each["input_ids"]), len(each["labels"])] for each in packs],
    "packed rows": Counter(length for each in packs for length in each["seq_lengths"])}))
"""


def run_script(python: str, program: str, *arguments: str | Path) -> str:
    """What a program prints that sees the recipe's scripts as they are shipped."""
    environ = {**os.environ, "PYTHONPATH": str(SCRIPTS), **QUIET}
    words = [python, "-c", program, *map(str, arguments)]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def answer_of_script(python: str, program: str, *arguments: str | Path) -> Any:
    """The JSON in its last line."""
    return json.loads(run_script(python, program, *arguments).splitlines()[-1])
