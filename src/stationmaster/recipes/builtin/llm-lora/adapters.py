"""The adapter alone, as one .safetensors file in peft's naming; its header holds its config and step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import peft
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

CONFIG_NAME = "adapter_config.json"


def save_adapter(model: Any, path: Path, *, step: int) -> None:
    """Write the adapter and, beside it, its config, each atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without embeddings: none is trained, and to find that out peft would ask the Hub.
    weights = peft.get_peft_model_state_dict(model, save_embedding_layers=False)
    tensors = {name: tensor.detach().to("cpu", torch.float32).contiguous() for name, tensor in weights.items()}
    config = json.dumps(model.peft_config["default"].to_dict(), default=_plain)
    fresh = path.with_name(f".{path.name}.new")
    save_file(tensors, fresh, {"format": "pt", "training_info": json.dumps({"step": step}), "adapter_config": config})
    fresh.replace(path)
    fresh.write_text(config + "\n", encoding="utf-8")
    fresh.replace(path.parent / CONFIG_NAME)
    print(f"saving checkpoint: {path}", flush=True)


def load_adapter(model: Any, path: Path) -> None:
    """Give the model the weights of an adapter of the same shape."""
    peft.set_peft_model_state_dict(model, load_file(path))


def step_of(path: Path) -> int:
    """The step at which an adapter was saved."""
    with safe_open(path, framework="pt") as file:
        return int(json.loads(file.metadata()["training_info"])["step"])


def _plain(value: object) -> object:
    return sorted(value) if isinstance(value, set) else str(value)
