"""Where the phases of each trainer begin and end: its methods are wrapped as its modules are imported."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from watched_memory import Watch  # type: ignore[import-not-found, unused-ignore]

Action = Callable[[Any], None]
Around = Callable[[Callable[[], Any], tuple[Any, ...]], Any]


def watch(trainer: str, watching: Watch) -> None:
    """Watch `trainer` in this process, which has not imported it yet."""
    actions = {"ai_toolkit": _ai_toolkit, "kohya": _kohya}[trainer](watching)
    sys.meta_path.insert(0, _AfterImport(actions))


def _ai_toolkit(watching: Watch) -> Mapping[str, Action]:
    def process(module: Any) -> None:
        owner = module.BaseSDTrainProcess
        _wrap(owner, "run", _whole(watching))
        _wrap(owner, "save", _phase(watching, "saving"))
        _wrap(owner, "sample", _phase(watching, "sampling"))

    def trainer(module: Any) -> None:
        owner = module.SDTrainer
        _wrap(owner, "before_dataset_load", _then(watching, "caching latents"))
        _wrap(owner, "hook_before_train_loop", _then(watching, "before training"))
        _wrap(owner, "hook_train_loop", _step(watching, lambda given: _ai_toolkit_size(given[1])))

    def model(name: str) -> Action:
        def say_status(module: Any) -> None:
            _wrap(getattr(module, name), "print_and_status_update", _named_loading(watching))

        return say_status

    return {
        "jobs.process.BaseSDTrainProcess": process,
        "extensions_built_in.sd_trainer.SDTrainer": trainer,
        "toolkit.stable_diffusion_model": model("StableDiffusion"),
        "toolkit.models.base_model": model("BaseModel"),
    }


def _ai_toolkit_size(batches: Any) -> str:
    batch = batches[0] if isinstance(batches, list) else batches
    item = batch.file_items[0]
    return f"{item.crop_width}x{item.crop_height}"


def _kohya(watching: Watch) -> Mapping[str, Action]:
    def network(module: Any) -> None:
        owner = module.NetworkTrainer
        _wrap(owner, "train", _whole(watching))
        _wrap(owner, "post_process_network", _then(watching, "before training"))
        _wrap(owner, "on_step_start", _step_starts(watching))

    def sdxl(module: Any) -> None:
        _wrap(module, "load_target_model", _phase(watching, "loading: models"))
        _wrap(module, "sample_images", _phase(watching, "sampling"))

    def datasets(module: Any) -> None:
        _wrap(module.DatasetGroup, "new_cache_latents", _phase(watching, "caching latents"))
        _wrap(module.DatasetGroup, "new_cache_text_encoder_outputs", _phase(watching, "caching text encodings"))

    def lora(module: Any) -> None:
        _wrap(module.LoRANetwork, "save_weights", _phase(watching, "saving"))

    def accelerator(module: Any) -> None:
        _wrap(module.Accelerator, "save_state", _phase(watching, "saving state"))

    return {
        "train_network": network,
        "library.sdxl_train_util": sdxl,
        "library.train_util": datasets,
        "networks.lora": lora,
        "accelerate.accelerator": accelerator,
    }


def _kohya_size(batch: Any) -> str:
    latents = batch["latents"]
    return f"{latents.shape[-1] * 8}x{latents.shape[-2] * 8}"


def _whole(watching: Watch) -> Around:
    """The phase lasts from here to the end, even after an error."""

    def around(call: Callable[[], Any], _: tuple[Any, ...]) -> Any:
        watching.begin("loading")
        well = False
        try:
            result = call()
            well = True
            return result
        except BaseException as error:
            watching.out_of_memory_if(error)
            raise
        finally:
            watching.finish(well=well)

    return around


def _phase(watching: Watch, name: str) -> Around:
    def around(call: Callable[[], Any], _: tuple[Any, ...]) -> Any:
        with watching.during(name):
            return call()

    return around


def _then(watching: Watch, name: str) -> Around:
    """The phase `name` begins here and lasts until another one begins."""

    def around(call: Callable[[], Any], _: tuple[Any, ...]) -> Any:
        watching.phase(name)
        return call()

    return around


def _named_loading(watching: Watch) -> Around:
    """Phases named after what ai-toolkit reports that it loads."""

    def around(call: Callable[[], Any], given: tuple[Any, ...]) -> Any:
        watching.phase(f"loading: {given[1]}")
        return call()

    return around


def _step(watching: Watch, size: Callable[[tuple[Any, ...]], str]) -> Around:
    def around(call: Callable[[], Any], given: tuple[Any, ...]) -> Any:
        _training(watching)
        watching.step_begins(size(given))
        try:
            return call()
        except BaseException as error:
            watching.out_of_memory_if(error)
            raise
        finally:
            watching.step_ends()

    return around


def _step_starts(watching: Watch) -> Around:
    """kohya's hook at the beginning of a step; there is none at its end."""

    def around(call: Callable[[], Any], given: tuple[Any, ...]) -> Any:
        batch = next(one for one in given if isinstance(one, dict) and "latents" in one)
        _training(watching)
        watching.step_begins(_kohya_size(batch))
        return call()

    return around


def _training(watching: Watch) -> None:
    if watching.now != "training":
        watching.phase("training")


def _wrap(owner: Any, name: str, around: Around) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(*given: Any, **named: Any) -> Any:
        return around(lambda: original(*given, **named), (*given, *named.values()))

    setattr(owner, name, wrapped)


class _AfterImport(MetaPathFinder):
    """Runs an action on a module right after it was imported."""

    def __init__(self, actions: Mapping[str, Action]) -> None:
        self._actions = actions

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        action = self._actions.get(name)
        if action is None:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_then_act(module: ModuleType) -> None:
            execute(module)
            action(module)

        spec.loader.exec_module = execute_then_act  # type: ignore[method-assign]
        return spec
