"""Configs of the two trainers, as people write them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import yaml

ABSENT = object()
"""Given as a value: the key is left out."""

AI_TOOLKIT = "ai-toolkit"
KOHYA = "kohya"
_FAST_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

_PROCESS: dict[str, Any] = {
    "type": "sd_trainer",
    "training_folder": "output",
    "device": "cuda:0",
    "network": {"type": "lora", "linear": 16, "linear_alpha": 16},
    "save": {"dtype": "float16", "save_every": 250, "max_step_saves_to_keep": 4},
    "datasets": [
        {
            "folder_path": "data/clay_bird",
            "caption_ext": "txt",
            "cache_latents_to_disk": True,
            "num_workers": 0,
            "resolution": [512, 768, 1024],
        }
    ],
    "train": {
        "batch_size": 1,
        "steps": 600,
        "gradient_checkpointing": True,
        "optimizer": "adamw8bit",
        "lr": "1e-4",
        "ema_config": {"use_ema": False, "ema_decay": 0.99},
        "dtype": "bf16",
    },
    "model": {"name_or_path": "black-forest-labs/FLUX.1-dev", "is_flux": True, "quantize": True},
    "sample": {"sampler": "flowmatch", "sample_every": 250, "width": 1024, "height": 1024, "prompts": ["a clay bird"]},
}
_KOHYA: dict[str, Any] = {
    "pretrained_model_name_or_path": "models/sd_xl_base_1.0.safetensors",
    "output_dir": "output",
    "output_name": "clay_bird",
    "train_data_dir": "data/clay_bird",
    "resolution": "1024,1024",
    "enable_bucket": True,
    "max_bucket_reso": 1536,
    "train_batch_size": 1,
    "max_train_steps": 600,
    "learning_rate": 0.0001,
    "optimizer_type": "AdamW8bit",
    "network_module": "networks.lora",
    "network_dim": 32,
    "mixed_precision": "bf16",
    "save_precision": "bf16",
    "gradient_checkpointing": True,
    "cache_latents": True,
    "max_data_loader_n_workers": 0,
    "save_every_n_steps": 250,
    "sample_every_n_steps": 250,
}

#: The path of each thing that advice can change, by trainer.
PATHS: Mapping[str, Mapping[str, str]] = {
    AI_TOOLKIT: {
        "batch": "train.batch_size",
        "ceiling": "train.max_batch_size",
        "workers": "datasets[0].num_workers",
        "cache": "datasets[0].cache_latents_to_disk",
        "checkpointing": "train.gradient_checkpointing",
        "ema": "train.ema_config.use_ema",
        "quantize": "model.quantize",
        "qtype": "model.qtype",
        "resolution": "datasets[0].resolution",
        "lr": "train.lr",
        "dtype": "train.dtype",
        "optimizer": "train.optimizer",
        "model": "model.name_or_path",
        "data": "datasets[0].folder_path",
        "save_every": "save.save_every",
        "save_dtype": "save.dtype",
        "keep_saves": "save.max_step_saves_to_keep",
        "sample_every": "sample.sample_every",
        "sample_width": "sample.width",
        "sample_height": "sample.height",
        "disable_sampling": "train.disable_sampling",
        "network": "network",
        "warning": "monitoring.memory_warning_threshold",
        "critical": "monitoring.memory_critical_threshold",
        "auto_batch": "train.auto_scale_batch_size",
        "steps": "train.steps",
    },
    KOHYA: {
        "batch": "train_batch_size",
        "workers": "max_data_loader_n_workers",
        "cache": "cache_latents",
        "checkpointing": "gradient_checkpointing",
        "quantize": "fp8_base",
        "resolution": "resolution",
        "lr": "learning_rate",
        "dtype": "mixed_precision",
        "optimizer": "optimizer_type",
        "model": "pretrained_model_name_or_path",
        "data": "train_data_dir",
        "save_every": "save_every_n_steps",
        "save_dtype": "save_precision",
        "sample_every": "sample_every_n_steps",
        "network": "network_module",
        "half_vae": "no_half_vae",
        "random_crop": "random_crop",
        "color_aug": "color_aug",
        "steps": "max_train_steps",
    },
}


def path_of(trainer: str, name: str) -> str:
    """Return the full path of a setting."""
    path = PATHS[trainer][name]
    return f"config.process[0].{path}" if trainer == AI_TOOLKIT else path


class Config:
    """A trainer's config: the defaults above with changes, by the names of PATHS or by the trainer's own path."""

    def __init__(self, trainer: str, changes: Mapping[str, Any]) -> None:
        self.trainer = trainer
        self._settings: dict[str, Any] = copy.deepcopy(_PROCESS if trainer == AI_TOOLKIT else _KOHYA)
        for name, value in changes.items():
            self._set(PATHS[trainer].get(name, name), value)

    def get(self, name: str, default: Any = None) -> Any:
        place: Any = self._settings
        for part in _parts(PATHS[self.trainer].get(name, name)):
            try:
                place = place[part]
            except (KeyError, IndexError):
                return default
        return place

    @property
    def name(self) -> str:
        """The name of the config's file."""
        return "config.yaml" if self.trainer == AI_TOOLKIT else "config.toml"

    @property
    def text(self) -> str:
        if self.trainer == AI_TOOLKIT:
            return str(yaml.dump(self._whole(), Dumper=_FAST_DUMPER, sort_keys=False))
        lines = [f"{key} = {_toml(value)}" for key, value in self._settings.items()]
        lines.insert(5, "\n[training]")  # a section means nothing
        return "\n".join(lines) + "\n"

    def flat(self) -> dict[str, Any]:
        """Return the config as one mapping from path to value; a list of plain values stays a list."""
        return dict(_flat("", self._whole()))

    def _whole(self) -> dict[str, Any]:
        if self.trainer == KOHYA:
            return self._settings
        return {"job": "extension", "config": {"name": "clay_bird", "process": [self._settings]}}

    def _set(self, path: str, value: Any) -> None:
        *above, last = _parts(path)
        place: Any = self._settings
        for part in above:
            place = place[part] if isinstance(part, int) else place.setdefault(part, {})
        if value is ABSENT:
            place.pop(last, None)
        else:
            place[last] = value


def _parts(path: str) -> list[str | int]:
    parts = path.replace("[", ".").replace("]", "").split(".")
    return [int(part) if part.isdigit() else part for part in parts]


def _flat(path: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [pair for key, inner in value.items() for pair in _flat(f"{path}.{key}" if path else key, inner)]
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [pair for place, inner in enumerate(value) for pair in _flat(f"{path}[{place}]", inner)]
    return [(path, value)]


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)
