"""Records a training of sd-scripts from what its scripts ask of accelerate, safetensors and their own library.

The scripts know only the trackers of their `--log_with`, so another one is added to the `Accelerator` that they make.
They report neither the norm of the gradients nor when they sample and save: the functions that do it are followed. Each
is changed in memory, right after its module is imported; the files of sd-scripts are not.
"""

from __future__ import annotations

import inspect
import re
import time
from contextlib import contextmanager
from functools import wraps
from types import ModuleType
from typing import Any, Callable, Iterator, Mapping

from trackside.collector import Run
from trackside.integrations.import_hooks import change_after_import
from trackside.integrations.quiet_hooks import quiet

_SAMPLES = ("sample_images", "sample_images_common")  # called after each step, and make samples if they are due
_ONE_SAMPLE = ("sample_image_inference", "_sample_image_inference")
_STEP_OF_FILE = re.compile(r"-step(\d{8})")


class KohyaTraining:
    """One training of a script."""

    def __init__(self, run: Run, *, batch_size: int | None = None) -> None:
        self.run = run
        self._batch_size = batch_size
        self._step = 0  # the last one that was logged
        self._has_begun = self._is_saving = self._is_sampling = False
        self._sampling_since: float | None = None
        self._gradient_norm: Any = None
        self._tracker: Any = None

    def change_imports(self) -> None:
        """Follow the script's imports from now on."""
        change_after_import(self._change_for)

    def begin(self) -> None:
        """Record the start of the training. May be repeated."""
        if not self._has_begun:
            self._has_begun = True
            self.run.event("training_start", step=0, batch_size=self._batch_size)

    def finish(self) -> None:
        """Write what is left."""
        if self._tracker is not None:
            self._tracker.finish()

    def step_values(self, values: Mapping[str, Any], step: int | None) -> tuple[dict[str, Any], int]:
        """Return what is recorded of the values that the script logs, and their step; no values: nothing is."""
        if step is None or "loss/current" not in values:  # of an epoch or a validation, under other numbers
            return dict(values), self._step
        if step <= self._step:  # a batch of the next step, for which gradients are being accumulated
            return {}, self._step
        self._step = step
        found = {**values, "grad_norm": self._gradient_norm, "batch_size": self._batch_size}
        self._gradient_norm = None
        return {name: value for name, value in found.items() if value is not None}, step

    def _change_for(self, module: str) -> Callable[[ModuleType], None] | None:
        if module == "accelerate.accelerator":
            return self._follow_accelerate
        if module == "safetensors.torch":
            return self._follow_safetensors
        return self._follow_library if module.startswith("library.") else None

    def _follow_accelerate(self, module: ModuleType) -> None:
        accelerator = module.Accelerator
        initialise, clip, save = accelerator.__init__, accelerator.clip_grad_norm_, accelerator.save_state

        @wraps(initialise)
        def initialise_with_tracker(this: Any, *args: Any, **kwargs: Any) -> None:
            initialise(this, *args, **kwargs)
            self._add_tracker(this)

        @wraps(clip)
        def clip_and_keep_norm(this: Any, *args: Any, **kwargs: Any) -> Any:
            norm = self._gradient_norm = clip(this, *args, **kwargs)
            return norm

        @wraps(save)
        def save_noted(this: Any, output_dir: Any = None, *args: Any, **kwargs: Any) -> Any:
            with self._saving(output_dir):
                return save(this, output_dir, *args, **kwargs)

        accelerator.__init__ = initialise_with_tracker
        accelerator.clip_grad_norm_ = clip_and_keep_norm
        accelerator.save_state = save_noted

    @quiet
    def _add_tracker(self, accelerator: Any) -> None:
        from trackside.integrations.kohya_tracker import KohyaTracker  # imports accelerate

        if self._tracker is None:
            self._tracker = KohyaTracker(self)
            accelerator.log_with = [*accelerator.log_with, self._tracker]

    def _follow_safetensors(self, module: ModuleType) -> None:
        save = module.save_file

        @wraps(save)
        def save_noted(tensors: Any, filename: Any, *args: Any, **kwargs: Any) -> Any:
            with self._saving(filename):
                return save(tensors, filename, *args, **kwargs)

        vars(module)["save_file"] = save_noted

    def _follow_library(self, module: ModuleType) -> None:
        for name in (*_SAMPLES, *_ONE_SAMPLE):
            function = vars(module).get(name)
            if callable(function) and function.__module__ == module.__name__:
                vars(module)[name] = self._followed(function, is_one=name in _ONE_SAMPLE)

    def _followed(self, function: Callable[..., Any], *, is_one: bool) -> Callable[..., Any]:
        @wraps(function)
        def followed(*args: Any, **kwargs: Any) -> Any:
            if is_one:
                self._note_sample(function, args, kwargs)
                return function(*args, **kwargs)
            with self._sampling_if_due():
                return function(*args, **kwargs)

        return followed

    @contextmanager
    def _saving(self, path: Any) -> Iterator[None]:
        """Record a save. Before the training, files are caches; a file of a state is part of that save."""
        if self._is_saving or not self._has_begun:
            yield
            return
        named = _STEP_OF_FILE.search(str(path))
        step = int(named[1]) if named else self._step
        self._is_saving = True
        self.run.event("save_start", at=time.time(), step=step)
        try:
            yield
            self.run.event("save_end", at=time.time(), step=step)
        finally:
            self._is_saving = False

    @contextmanager
    def _sampling_if_due(self) -> Iterator[None]:
        """Record the sampling, if the function makes samples at all."""
        if self._sampling_since is not None:  # one of these functions calls the other
            yield
            return
        self._sampling_since = time.time()
        try:
            yield
            if self._is_sampling:
                self.run.event("sampling_end", at=time.time(), step=self._sampled_step)
        finally:
            self._sampling_since, self._is_sampling = None, False

    @quiet
    def _note_sample(self, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        if self._sampling_since is not None and not self._is_sampling:
            steps = inspect.signature(function).bind(*args, **kwargs).arguments.get("steps")
            self._is_sampling, self._sampled_step = True, int(steps or 0)
            self.run.event("sampling_start", at=self._sampling_since, step=self._sampled_step)
