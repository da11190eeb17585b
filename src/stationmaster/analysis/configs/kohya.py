"""The config of kohya's sd-scripts: TOML whose sections mean nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stationmaster.analysis.configs.base import Setting, number, truth
from stationmaster.analysis.levers import Lever

_PLAIN: Mapping[Lever, tuple[str, Any]] = {
    Lever.BATCH_SIZE: ("train_batch_size", 1),
    Lever.WORKERS: ("max_data_loader_n_workers", 8),
    Lever.GRADIENT_CHECKPOINTING: ("gradient_checkpointing", False),
    Lever.RESOLUTION: ("resolution", None),
    Lever.DTYPE: ("mixed_precision", "no"),
    Lever.HALF_VAE: ("no_half_vae", False),
    Lever.OPTIMIZER: ("optimizer_type", "AdamW"),
    Lever.MODEL: ("pretrained_model_name_or_path", None),
    Lever.DATASET: ("train_data_dir", None),
    Lever.STEPS: ("max_train_steps", 1600),
    Lever.SAVE_DTYPE: ("save_precision", None),
}
_SWITCHES = frozenset({Lever.GRADIENT_CHECKPOINTING, Lever.HALF_VAE})
_NUMBERS = frozenset({Lever.BATCH_SIZE, Lever.WORKERS, Lever.STEPS})
_DEFAULT_RATE = 2e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class KohyaConfig:
    options: Mapping[str, Any]
    framework: str = "kohya"

    @property
    def trains_adapter(self) -> bool:
        """Without a network module the model's own weights are trained."""
        return bool(self.options.get("network_module"))

    @property
    def thresholds(self) -> Mapping[str, float]:
        return {}

    def setting(self, lever: Lever) -> Setting | None:
        if lever in _PLAIN:
            key, default = _PLAIN[lever]
            return self._read(key, default, lever)
        if lever is Lever.QUANTIZE:
            return self._read("fp8_base", False, Lever.GRADIENT_CHECKPOINTING) if self.trains_adapter else None
        if lever is Lever.CACHE_LATENTS:
            return self._caching()
        if lever is Lever.LEARNING_RATE:
            return self._first_given("unet_lr", "learning_rate") or Setting(
                path="learning_rate", value=_DEFAULT_RATE, is_given=False
            )
        if lever is Lever.SAVE_EVERY:
            return self._every("save")
        if lever is Lever.SAMPLE_EVERY:
            return self._every("sample")
        if lever is Lever.DISABLE_SAMPLING:
            prompts = self.options.get("sample_prompts")
            return None if prompts is None else Setting(path="sample_prompts", value=prompts, is_given=True)
        return None

    def _read(self, key: str, default: Any, lever: Lever) -> Setting:
        held = self.options.get(key)
        if held is None:
            return Setting(path=key, value=default, is_given=False)
        if lever in _SWITCHES:
            held = truth(held)
        elif lever in _NUMBERS:
            found = number(held)
            held = held if found is None else int(found)
        return Setting(path=key, value=held, is_given=True)

    def _caching(self) -> Setting | None:
        """Latents of pictures that change at every turn cannot be cached."""
        if truth(self.options.get("random_crop")) or truth(self.options.get("color_aug")):
            return None
        if truth(self.options.get("cache_latents_to_disk")) and not truth(self.options.get("cache_latents")):
            return Setting(path="cache_latents_to_disk", value=True, is_given=True)  # implies the other
        held = self.options.get("cache_latents")
        return Setting(path="cache_latents", value=truth(held), is_given=held is not None)

    def _first_given(self, *keys: str) -> Setting | None:
        for key in keys:
            found = number(self.options.get(key))
            if found is not None:
                return Setting(path=key, value=found, is_given=True)
        return None

    def _every(self, what: str) -> Setting | None:
        given = self._first_given(f"{what}_every_n_steps", f"{what}_every_n_epochs")
        if given is not None:
            return Setting(path=given.path, value=int(given.value), is_given=True)
        # Samples are drawn only where a key asks for them.
        return Setting(path=f"{what}_every_n_steps", value=None, is_given=False) if what == "save" else None
