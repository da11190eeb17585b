"""Write a base model of FLUX.1-dev's or SDXL's shape with random weights, in the layout that the trainers read.

    python3 weights.py flux /tmp/measure/flux                # 34 GB, as large as FLUX.1-dev
    python3 weights.py sdxl /tmp/measure/sdxl                # 14 GB, as large as SDXL base
    python3 weights.py flux /tmp/measure/flux --size tiny    # a few MB, for a rehearsal without GPU

Only the shapes come from diffusers and transformers; the numbers are one random block, repeated, so that only the disk
limits the speed.
"""

from __future__ import annotations

import argparse
import json
import struct
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import torch  # type: ignore[import-not-found, unused-ignore]
from diffusers import (  # type: ignore[import-not-found, unused-ignore]
    AutoencoderKL,
    EulerDiscreteScheduler,
    FlowMatchEulerDiscreteScheduler,
    FluxTransformer2DModel,
    UNet2DConditionModel,
)
from tokenizers import Tokenizer, models, pre_tokenizers, processors  # type: ignore[import-not-found, unused-ignore]
from transformers import (  # type: ignore[import-not-found, unused-ignore]
    CLIPTextConfig,
    CLIPTextModel,
    CLIPTextModelWithProjection,
    T5Config,
    T5EncoderModel,
)

BLOCK_VALUES = 2**25
TYPES = {torch.bfloat16: "BF16", torch.float32: "F32"}
BEGIN, END = "<|startoftext|>", "<|endoftext|>"
DONE = ".complete"
# kohya's scripts ask the Hub for these two by name
SDXL_TOKENIZERS = ["openai/clip-vit-large-patch14", "laion/CLIP-ViT-bigG-14-laion2B-39B-b160k"]

FLUX: dict[str, dict[str, Any]] = {
    "full": {
        "transformer": {"num_layers": 19, "num_single_layers": 38, "attention_head_dim": 128, "num_attention_heads": 24,
                        "joint_attention_dim": 4096, "pooled_projection_dim": 768, "axes_dims_rope": (16, 56, 56)},
        "t5": {"vocab_size": 32128, "d_model": 4096, "d_kv": 64, "d_ff": 10240, "num_layers": 24, "num_heads": 64},
        "clip": {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12},
        "vae": {"block_out_channels": (128, 256, 512, 512), "layers_per_block": 2},
    },
    "tiny": {
        "transformer": {"num_layers": 1, "num_single_layers": 1, "attention_head_dim": 16, "num_attention_heads": 2,
                        "joint_attention_dim": 32, "pooled_projection_dim": 32, "axes_dims_rope": (4, 6, 6)},
        "t5": {"vocab_size": 512, "d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 1, "num_heads": 2},
        "clip": {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2},
        "vae": {"block_out_channels": (8, 8, 8, 8), "layers_per_block": 1, "norm_num_groups": 4,
                "mid_block_add_attention": False},
    },
}  # fmt: skip
SDXL: dict[str, dict[str, Any]] = {
    "full": {
        "unet": {"block_out_channels": (320, 640, 1280), "attention_head_dim": (5, 10, 20)},
        "clip": {"intermediate_size": 3072},
        "clip_2": {"intermediate_size": 5120, "num_hidden_layers": 32},
        "vae": {"block_out_channels": (128, 256, 512, 512), "layers_per_block": 2},
    },
    # the widths of the text encoders' output are fixed in kohya's scripts
    "tiny": {
        "unet": {"block_out_channels": (32, 64, 128), "attention_head_dim": (1, 1, 2)},
        "clip": {"intermediate_size": 64},
        "clip_2": {"intermediate_size": 64, "num_hidden_layers": 2},
        "vae": {"block_out_channels": (32, 32, 32, 32), "layers_per_block": 1},
    },
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=["flux", "sdxl"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=["full", "tiny"], default="full")
    parser.add_argument("--count", action="store_true", help="print the numbers of parameters and write no weights")
    arguments = parser.parse_args()
    if (arguments.folder / DONE).exists():
        print("the weights are here", flush=True)
        return 0
    write = _write_flux if arguments.model == "flux" else _write_sdxl
    write(arguments.folder, Weights(arguments.folder, count_only=arguments.count), arguments.size)
    if not arguments.count:
        (arguments.folder / DONE).touch()
    return 0


def _write_flux(folder: Path, weights: Weights, size: str) -> None:
    shape = FLUX[size]
    with torch.device("meta"):
        transformer = FluxTransformer2DModel(patch_size=1, in_channels=64, guidance_embeds=True, **shape["transformer"])
        vae = AutoencoderKL(
            **_VAE,
            **shape["vae"],
            latent_channels=16,
            scaling_factor=0.3611,
            shift_factor=0.1159,
            use_quant_conv=False,
            use_post_quant_conv=False,
        )
        t5 = T5EncoderModel(T5Config(**shape["t5"], feed_forward_proj="gated-gelu", tie_word_embeddings=False))
        clip = CLIPTextModel(CLIPTextConfig(**shape["clip"], **_CLIP, projection_dim=shape["clip"]["hidden_size"]))
    weights.write("transformer", transformer, torch.bfloat16)
    weights.write("vae", vae, torch.bfloat16)
    weights.write("text_encoder", clip, torch.bfloat16)
    weights.write("text_encoder_2", t5, torch.bfloat16)
    FlowMatchEulerDiscreteScheduler(
        shift=3.0,
        use_dynamic_shifting=True,
        base_shift=0.5,
        max_shift=1.15,
        base_image_seq_len=256,
        max_image_seq_len=4096,
    ).save_pretrained(folder / "scheduler")
    _write_clip_tokenizer(folder / "tokenizer")
    _write_t5_tokenizer(folder / "tokenizer_2")
    _write_index(
        folder,
        "FluxPipeline",
        scheduler=("diffusers", "FlowMatchEulerDiscreteScheduler"),
        text_encoder=("transformers", "CLIPTextModel"),
        text_encoder_2=("transformers", "T5EncoderModel"),
        tokenizer=("transformers", "CLIPTokenizer"),
        tokenizer_2=("transformers", "T5TokenizerFast"),
        transformer=("diffusers", "FluxTransformer2DModel"),
        vae=("diffusers", "AutoencoderKL"),
    )


def _write_sdxl(folder: Path, weights: Weights, size: str) -> None:
    shape = SDXL[size]
    with torch.device("meta"):
        unet = UNet2DConditionModel(
            **shape["unet"],
            sample_size=128,
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
            layers_per_block=2,
            transformer_layers_per_block=(1, 2, 10),
            cross_attention_dim=2048,
            use_linear_projection=True,
            addition_embed_type="text_time",
            addition_time_embed_dim=256,
            projection_class_embeddings_input_dim=2816,
        )
        vae = AutoencoderKL(**_VAE, **shape["vae"], latent_channels=4, scaling_factor=0.13025)
        clip = CLIPTextModel(
            CLIPTextConfig(
                **shape["clip"],
                **_CLIP,
                hidden_size=768,
                num_hidden_layers=12,
                num_attention_heads=12,
                projection_dim=768,
            )
        )
        clip_2 = CLIPTextModelWithProjection(
            CLIPTextConfig(
                **shape["clip_2"],
                **_CLIP,
                hidden_size=1280,
                num_attention_heads=20,
                projection_dim=1280,
                hidden_act="gelu",
            )
        )
    # the files of SDXL base that are read for bf16 training hold 32-bit numbers
    weights.write("unet", unet, torch.float32)
    weights.write("vae", vae, torch.float32)
    weights.write("text_encoder", clip, torch.float32)
    weights.write("text_encoder_2", clip_2, torch.float32)
    EulerDiscreteScheduler(beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012).save_pretrained(
        folder / "scheduler"
    )
    _write_clip_tokenizer(folder / "tokenizer")
    _write_clip_tokenizer(folder / "tokenizer_2")
    for name in SDXL_TOKENIZERS:
        _write_clip_tokenizer(_cached(folder / "hub", name))
    _write_index(
        folder,
        "StableDiffusionXLPipeline",
        scheduler=("diffusers", "EulerDiscreteScheduler"),
        text_encoder=("transformers", "CLIPTextModel"),
        text_encoder_2=("transformers", "CLIPTextModelWithProjection"),
        tokenizer=("transformers", "CLIPTokenizer"),
        tokenizer_2=("transformers", "CLIPTokenizer"),
        unet=("diffusers", "UNet2DConditionModel"),
        vae=("diffusers", "AutoencoderKL"),
    )


_VAE: Mapping[str, Any] = {
    "down_block_types": ("DownEncoderBlock2D",) * 4,
    "up_block_types": ("UpDecoderBlock2D",) * 4,
    "sample_size": 1024,
}
_CLIP: Mapping[str, Any] = {
    "vocab_size": 49408,
    "max_position_embeddings": 77,
    "bos_token_id": 512,
    "eos_token_id": 513,
}


class Weights:
    """Writes models with random weights; norms are one and biases zero."""

    def __init__(self, folder: Path, *, count_only: bool) -> None:
        self._folder = folder
        self._count_only = count_only
        self._random = torch.randn(BLOCK_VALUES, generator=torch.Generator().manual_seed(0)) * 0.02

    def write(self, name: str, model: Any, dtype: Any) -> None:
        began = time.monotonic()
        shapes = dict(_shapes(model))
        total = sum(_count(shape) for shape in shapes.values())
        if not self._count_only:
            folder = self._folder / name
            folder.mkdir(parents=True, exist_ok=True)
            model.config.save_pretrained(folder) if hasattr(model.config, "save_pretrained") else model.save_config(
                folder
            )
            ours = type(model).__module__.startswith("diffusers")
            file = "diffusion_pytorch_model.safetensors" if ours else "model.safetensors"
            with (folder / file).open("wb") as opened:
                self._write_file(opened, shapes, dtype)
        seconds = time.monotonic() - began
        print(f"{name}: {total / 1e9:.3f} billion parameters, {seconds:.1f} s", flush=True)

    def _write_file(self, file: BinaryIO, shapes: Mapping[str, tuple[int, ...]], dtype: Any) -> None:
        file.write(_header(shapes, dtype))
        random = _raw(self._random.to(dtype))
        zeros, ones = _raw(torch.zeros(2**16, dtype=dtype)), _raw(torch.ones(2**16, dtype=dtype))
        for name, shape in shapes.items():
            plain = ones if name.endswith("weight") else zeros
            _repeat(file, plain if len(shape) < 2 else random, _count(shape) * dtype.itemsize)


def _shapes(model: Any) -> Iterator[tuple[str, tuple[int, ...]]]:
    for name, tensor in model.state_dict().items():
        # the same tensor as `shared.weight`, which is the name that files have
        if name != "encoder.embed_tokens.weight" and tensor.is_floating_point():
            yield name, tuple(tensor.shape)


def _count(shape: tuple[int, ...]) -> int:
    total = 1
    for side in shape:
        total *= side
    return total


def _header(shapes: Mapping[str, tuple[int, ...]], dtype: Any) -> bytes:
    """What a safetensors file begins with: the length of a JSON object, and the object."""
    at, entries = 0, dict[str, Any](__metadata__={"format": "pt"})
    for name, shape in shapes.items():
        after = at + _count(shape) * dtype.itemsize
        entries[name] = {"dtype": TYPES[dtype], "shape": list(shape), "data_offsets": [at, after]}
        at = after
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def _raw(tensor: Any) -> memoryview:
    return memoryview(tensor.view(torch.uint8).numpy())


def _repeat(file: BinaryIO, block: memoryview, length: int) -> None:
    while length > 0:
        length -= file.write(block[:length])


def _write_clip_tokenizer(folder: Path) -> None:
    """One token for each byte: captions become longer than with the real one, and are cut at the same length."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = [*letters, *(f"{letter}</w>" for letter in letters), BEGIN, END]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps({name: number for number, name in enumerate(names)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    settings = {"bos_token": BEGIN, "eos_token": END, "unk_token": END, "pad_token": END}
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "CLIPTokenizer", "model_max_length": 77, **settings})
    )
    (folder / "special_tokens_map.json").write_text(json.dumps(settings))


def _write_t5_tokenizer(folder: Path) -> None:
    pieces = [
        ("<pad>", 0.0),
        ("</s>", 0.0),
        ("<unk>", -9.0),
        *((chr(code), -4.0) for code in range(33, 127)),
        ("▁", -3.0),
    ]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=2))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "extra_ids": 0}
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "T5TokenizerFast", "model_max_length": 512, **settings})
    )


def _cached(hub: Path, name: str) -> Path:
    """Where a Hub cache keeps the files of the repository `name`."""
    repository = hub / f"models--{name.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True, exist_ok=True)
    (repository / "refs" / "main").write_text("0" * 40)
    return repository / "snapshots" / ("0" * 40)


def _write_index(folder: Path, pipeline: str, **parts: tuple[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    index = {"_class_name": pipeline, "_diffusers_version": "0.32.1", **parts}
    (folder / "model_index.json").write_text(json.dumps(index, indent=2))


if __name__ == "__main__":
    raise SystemExit(main())
