"""Make a FLUX.1-shaped model with tiny random weights: PYTHON tiny_flux.py FOLDER, by a Python that has diffusers.

Every part is there and fits the others as in FLUX.1-dev: a transformer, a VAE with 16 channels and 8 pixels a latent, a
T5 and a CLIP text encoder whose tokenizers know single characters. The result is some hundred kilobytes.
"""

from __future__ import annotations

import json
import string
import sys
from pathlib import Path
from typing import Any

import torch  # type: ignore[import-not-found]
from diffusers import AutoencoderKL, FlowMatchEulerDiscreteScheduler, FluxTransformer2DModel  # type: ignore[import-not-found]
from tokenizers import Tokenizer, models, pre_tokenizers, processors  # type: ignore[import-not-found]
from transformers import CLIPTextConfig, CLIPTextModel, T5Config, T5EncoderModel  # type: ignore[import-not-found]

WIDTH = 32
CHARACTERS = string.ascii_lowercase + string.digits + string.punctuation
BEGIN, END = "<|startoftext|>", "<|endoftext|>"


def make(folder: Path) -> None:
    torch.manual_seed(1)
    clip_words = write_clip_tokenizer(folder / "tokenizer")
    t5_words = write_t5_tokenizer(folder / "tokenizer_2")
    parts: dict[str, Any] = {
        "transformer": transformer(),
        "vae": vae(),
        "text_encoder": CLIPTextModel(clip_config(clip_words)),
        "text_encoder_2": T5EncoderModel(t5_config(t5_words)),
    }
    for name, part in parts.items():
        part.to(torch.bfloat16).save_pretrained(folder / name)
    scheduler = FlowMatchEulerDiscreteScheduler(shift=3.0, use_dynamic_shifting=True)
    scheduler.save_pretrained(folder / "scheduler")
    (folder / "model_index.json").write_text(json.dumps(INDEX))


def transformer() -> FluxTransformer2DModel:
    return FluxTransformer2DModel(
        in_channels=64,  # 16 latent channels, packed in squares of four
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=WIDTH,
        pooled_projection_dim=WIDTH,
        guidance_embeds=True,
        axes_dims_rope=(4, 6, 6),
    )


def vae() -> AutoencoderKL:
    return AutoencoderKL(
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
        block_out_channels=(4, 4, 4, 4),
        layers_per_block=1,
        latent_channels=16,
        norm_num_groups=2,
        scaling_factor=0.3611,
        shift_factor=0.1159,
        use_quant_conv=False,
        use_post_quant_conv=False,
        mid_block_add_attention=False,
    )


def clip_config(words: dict[str, int]) -> CLIPTextConfig:
    return CLIPTextConfig(
        vocab_size=len(words),
        hidden_size=WIDTH,
        intermediate_size=WIDTH,
        projection_dim=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=2,
        bos_token_id=words[BEGIN],
        eos_token_id=words[END],
        pad_token_id=words[END],
    )


def t5_config(words: int) -> T5Config:
    return T5Config(
        vocab_size=words,
        d_model=WIDTH,
        d_kv=16,
        d_ff=WIDTH,
        num_layers=1,
        num_heads=2,
        feed_forward_proj="gated-gelu",
    )


def write_clip_tokenizer(folder: Path) -> dict[str, int]:
    """Byte pairs without a single pair: each character is a word, with and without a word's end."""
    texts = [*CHARACTERS, *(f"{character}</w>" for character in CHARACTERS), BEGIN, END]
    words = {text: number for number, text in enumerate(texts)}
    folder.mkdir(parents=True)
    (folder / "vocab.json").write_text(json.dumps(words))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    special = {"bos_token": BEGIN, "eos_token": END, "unk_token": END, "pad_token": END}
    settings = {"tokenizer_class": "CLIPTokenizer", "model_max_length": 77, **special}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return words


def write_t5_tokenizer(folder: Path) -> int:
    """A unigram model of single characters; how many words it has."""
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("\u2581", -1.0), *((each, -2.0) for each in CHARACTERS)]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=2))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    folder.mkdir(parents=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    special = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "extra_ids": 0}
    settings = {"tokenizer_class": "T5TokenizerFast", "model_max_length": 512, **special}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return len(pieces)


INDEX = {
    "_class_name": "FluxPipeline",
    "scheduler": ["diffusers", "FlowMatchEulerDiscreteScheduler"],
    "text_encoder": ["transformers", "CLIPTextModel"],
    "text_encoder_2": ["transformers", "T5EncoderModel"],
    "tokenizer": ["transformers", "CLIPTokenizer"],
    "tokenizer_2": ["transformers", "T5TokenizerFast"],
    "transformer": ["diffusers", "FluxTransformer2DModel"],
    "vae": ["diffusers", "AutoencoderKL"],
}

if __name__ == "__main__":
    make(Path(sys.argv[1]))
