"""The config of ai-toolkit: YAML or JSON with everything below `config.process[0]`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stationmaster.analysis.configs.base import Setting, number, truth
from stationmaster.analysis.levers import Lever

_ROOT = "config.process[0]"

#: Path below the process, and the default of ai-toolkit's code.
_PLAIN: Mapping[Lever, tuple[str, Any]] = {
    Lever.BATCH_SIZE: ("train.batch_size", 1),
    Lever.MAX_BATCH_SIZE: ("train.max_batch_size", None),
    Lever.GRADIENT_CHECKPOINTING: ("train.gradient_checkpointing", True),
    Lever.EMA: ("train.ema_config.use_ema", False),
    Lever.QUANTIZE: ("model.quantize", False),
    Lever.LEARNING_RATE: ("train.lr", 1e-6),
    Lever.DTYPE: ("train.dtype", "fp32"),
    Lever.OPTIMIZER: ("train.optimizer", "adamw"),
    Lever.STEPS: ("train.steps", 1000),
    Lever.MODEL: ("model.name_or_path", None),
    Lever.SAVE_EVERY: ("save.save_every", 1000),
    Lever.SAVE_DTYPE: ("save.dtype", "float16"),
    Lever.KEEP_SAVES: ("save.max_step_saves_to_keep", 5),
    Lever.SAMPLE_EVERY: ("sample.sample_every", 100),
    Lever.SAMPLE_WIDTH: ("sample.width", 512),
    Lever.SAMPLE_HEIGHT: ("sample.height", 512),
    Lever.DISABLE_SAMPLING: ("train.disable_sampling", False),
}
_NUMBERS = frozenset(
    {
        Lever.BATCH_SIZE,
        Lever.MAX_BATCH_SIZE,
        Lever.LEARNING_RATE,
        Lever.STEPS,
        Lever.SAVE_EVERY,
        Lever.KEEP_SAVES,
        Lever.SAMPLE_EVERY,
        Lever.SAMPLE_WIDTH,
        Lever.SAMPLE_HEIGHT,
    }
)
_SWITCHES = frozenset({Lever.GRADIENT_CHECKPOINTING, Lever.EMA, Lever.QUANTIZE, Lever.DISABLE_SAMPLING})
_SAMPLING = frozenset({Lever.SAMPLE_EVERY, Lever.SAMPLE_WIDTH, Lever.SAMPLE_HEIGHT})
_DEFAULT_WORKERS = 2
_DEFAULT_RESOLUTION = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class AiToolkitConfig:
    process: Mapping[str, Any]
    framework: str = "ai-toolkit"

    @property
    def trains_adapter(self) -> bool:
        """Without a network the model's own weights are trained."""
        return isinstance(self.process.get("network"), Mapping)

    @property
    def thresholds(self) -> Mapping[str, float]:
        block = self.process.get("monitoring")
        names = ("memory_warning_threshold", "memory_critical_threshold")
        given = {name: number(block.get(name)) for name in names} if isinstance(block, Mapping) else {}
        return {name: value for name, value in given.items() if value is not None and 0 < value <= 1}

    def setting(self, lever: Lever) -> Setting | None:
        if lever in _SAMPLING and self._is_on(Lever.DISABLE_SAMPLING):
            return None
        if lever is Lever.QUANTIZE and not self.trains_adapter:
            return None
        if lever in _PLAIN:
            path, default = _PLAIN[lever]
            return self._read(path, default, lever)
        if lever is Lever.WORKERS:
            return self._of_dataset(0, "num_workers", _DEFAULT_WORKERS)
        if lever is Lever.RESOLUTION:
            return self._largest_resolution()
        if lever is Lever.CACHE_LATENTS:
            return self._uncached()
        if lever is Lever.DATASET:
            return self._of_dataset(0, "folder_path", None)
        return None

    def _is_on(self, lever: Lever) -> bool:
        path, default = _PLAIN[lever]
        return bool(self._read(path, default, lever).value)

    def _read(self, path: str, default: Any, lever: Lever) -> Setting:
        held: Any = self.process
        for key in path.split("."):
            if not isinstance(held, Mapping) or held.get(key) is None:
                return Setting(path=f"{_ROOT}.{path}", value=default, is_given=False)
            held = held[key]
        if lever in _NUMBERS:
            held = _as_number(held)
        elif lever in _SWITCHES:
            held = truth(held)
        return Setting(path=f"{_ROOT}.{path}", value=held, is_given=True)

    @property
    def _datasets(self) -> Sequence[Mapping[str, Any]]:
        held = self.process.get("datasets")
        return [each for each in held if isinstance(each, Mapping)] if isinstance(held, list) else []

    def _of_dataset(self, index: int, key: str, default: Any) -> Setting | None:
        if index >= len(self._datasets):
            return None
        held = self._datasets[index].get(key)
        path = f"{_ROOT}.datasets[{index}].{key}"
        if held is None:
            return Setting(path=path, value=default, is_given=False)
        return Setting(path=path, value=_as_number(held) if key == "num_workers" else held, is_given=True)

    def _largest_resolution(self) -> Setting | None:
        """Return the resolution of the dataset that has the largest."""
        sizes = [max(resolutions(each.get("resolution", _DEFAULT_RESOLUTION))) for each in self._datasets]
        if not sizes:
            return None
        index = sizes.index(max(sizes))
        return self._of_dataset(index, "resolution", _DEFAULT_RESOLUTION)

    def _uncached(self) -> Setting | None:
        """Return the caching of the first dataset that does not cache its latents and can; of the first if all do."""
        able = [
            index
            for index, each in enumerate(self._datasets)
            if not (each.get("augments") or each.get("augmentations"))
        ]
        if not able:
            return None
        open_ones = [index for index in able if not self._caches(index)]
        if not open_ones:
            key = "cache_latents" if truth(self._datasets[able[0]].get("cache_latents")) else "cache_latents_to_disk"
            return self._of_dataset(able[0], key, False)
        return self._of_dataset(open_ones[0], "cache_latents_to_disk", False)

    def _caches(self, index: int) -> bool:
        each = self._datasets[index]
        return truth(each.get("cache_latents")) or truth(each.get("cache_latents_to_disk"))


def resolutions(value: Any) -> list[float]:
    """Return the sizes in a value like 512, [512, 768] or "1024,1024"; one of 512 if there is none."""
    parts = value.replace("x", ",").split(",") if isinstance(value, str) else value
    parts = parts if isinstance(parts, list) else [parts]
    found = [size for part in parts if (size := number(part)) is not None]
    return found or [float(_DEFAULT_RESOLUTION)]


def _as_number(held: Any) -> Any:
    found = number(held)
    if found is None:
        return held
    return int(found) if found.is_integer() and not (isinstance(held, float) and held < 1) else found
