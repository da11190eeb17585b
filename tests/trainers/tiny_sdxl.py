"""Random weights in the shape of SDXL, some megabytes, as a diffusers folder; run by the trainer's own Python.

    python tiny_sdxl.py FOLDER

FOLDER/model is the base model, FOLDER/tokenizers what sd-scripts reads as `tokenizer_cache_dir`. The UNet has a tenth
of SDXL's width and one layer wherever SDXL has several; sd-scripts has both numbers in its source, so a copy of it must
be changed too.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import diffusers  # type: ignore[import-not-found]
import torch  # type: ignore[import-not-found]
from transformers import (  # type: ignore[import-not-found]
    CLIPTextConfig,
    CLIPTextModel,
    CLIPTextModelWithProjection,
    CLIPTokenizer,
)

WIDTH = 32
TOKENIZERS = ("openai/clip-vit-large-patch14", "laion/CLIP-ViT-bigG-14-laion2B-39B-b160k")
START, END = "<|startoftext|>", "<|endoftext|>"


def main(folder: Path) -> None:
    torch.manual_seed(1)
    size = len(vocabulary())
    tokenizer = write_tokenizers(folder / "tokenizers")
    first, second = text_encoders(size)
    diffusers.StableDiffusionXLPipeline(
        vae=autoencoder(),
        text_encoder=first,
        text_encoder_2=second,
        tokenizer=tokenizer,
        tokenizer_2=tokenizer,
        unet=unet(),
        scheduler=diffusers.EulerDiscreteScheduler(beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear"),
        add_watermarker=False,
    ).save_pretrained(folder / "model")


def vocabulary() -> dict[str, int]:
    """Printable ASCII, letter by letter, in the middle and at the end of a word; nothing is merged."""
    letters = [chr(code) for code in range(33, 127)]
    words = [*letters, *(f"{letter}</w>" for letter in letters), START, END]
    return {word: number for number, word in enumerate(words)}


def write_tokenizers(folder: Path) -> Any:
    tokenizer = None
    for name in TOKENIZERS:
        place = folder / name.replace("/", "_")
        place.mkdir(parents=True)
        (place / "vocab.json").write_text(json.dumps(vocabulary()))
        (place / "merges.txt").write_text("#version: 0.2\n")
        tokenizer = CLIPTokenizer(str(place / "vocab.json"), str(place / "merges.txt"), model_max_length=77)
        tokenizer.save_pretrained(place)
    return tokenizer


def text_encoders(size: int) -> tuple[Any, Any]:
    """Both have SDXL's hidden sizes, which the UNet's input is made of; the first is read at its 11th layer."""
    same = {"vocab_size": size, "intermediate_size": 32, "bos_token_id": size - 2, "eos_token_id": size - 1}
    first = CLIPTextConfig(hidden_size=768, projection_dim=768, num_hidden_layers=12, num_attention_heads=12, **same)
    second = CLIPTextConfig(
        hidden_size=1280, projection_dim=1280, num_hidden_layers=2, num_attention_heads=20, hidden_act="gelu", **same
    )
    return CLIPTextModel(first), CLIPTextModelWithProjection(second)


def autoencoder() -> Any:
    return diffusers.AutoencoderKL(
        block_out_channels=[32] * 4,
        down_block_types=["DownEncoderBlock2D"] * 4,
        up_block_types=["UpDecoderBlock2D"] * 4,
        layers_per_block=1,
        scaling_factor=0.13025,
    )


def unet() -> Any:
    return diffusers.UNet2DConditionModel(
        block_out_channels=[WIDTH, 2 * WIDTH, 4 * WIDTH],
        down_block_types=["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
        up_block_types=["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"],
        layers_per_block=2,
        transformer_layers_per_block=1,
        attention_head_dim=[1, 1, 2],
        cross_attention_dim=768 + 1280,
        use_linear_projection=True,
        addition_embed_type="text_time",
        addition_time_embed_dim=256,
        projection_class_embeddings_input_dim=1280 + 6 * 256,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
