"""A tracker for scripts that use accelerate, such as those of diffusers and kohya's sd-scripts."""

from __future__ import annotations

import os
import time
from typing import Any, Mapping

from accelerate.state import PartialState  # type: ignore[import-not-found, unused-ignore]
from accelerate.tracking import GeneralTracker  # type: ignore[import-not-found, unused-ignore]

from trackside.collector import Run
from trackside.integrations.late_values import LateRows
from trackside.integrations.metric_names import step_values, without_arguments
from trackside.integrations.quiet_hooks import quiet
from trackside.integrations.training import Training


class TracksideTracker(GeneralTracker):
    """Records what the script logs: `Accelerator(log_with=TracksideTracker())` and `init_trackers`, as always.

    Each `accelerator.log` with a loss, a learning rate or a gradient norm becomes the row of its step; other values are
    stored under their names.
    """

    name = "trackside"
    requires_logging_directory = False
    main_process_only = True

    def __init__(
        self, project_name: str = "", *, run: Run | None = None, framework: str = "accelerate", **ignored: Any
    ) -> None:
        super().__init__()
        self._late = LateRows()
        self._training = Training(run, before_end=self._late.write_all)
        self._framework = framework
        self._started_at: float | None = None
        #: The last step that was logged.
        self._step: int | None = None

    @property
    def tracker(self) -> Run | None:
        """The run that records; None before the first values, and in other processes than the main one."""
        return self._training.run

    @quiet
    def start(self) -> None:
        """Note the start of the training; the run opens with the script's configuration, or its first values."""
        self._started_at = time.time()

    @quiet
    def store_init_configuration(self, values: Mapping[str, Any]) -> None:
        """Open the run with the script's configuration, which is stored with each event."""
        self._begin(values)

    @quiet
    def log(self, values: Mapping[str, Any], step: int | None = None, **ignored: Any) -> None:
        """Record what the script logs for a step; without a number it is the next step."""
        self._begin({})
        run = self.tracker
        if run is None or not values:
            return
        found = step_values(values)
        last, now = self._step, time.time()
        number = _next_step(last, is_step=found.is_step) if step is None else int(step)
        if not found.is_step or number == last:
            # An epoch's number is not a step's; and the row of a step is written once.
            self._late.add(
                without_arguments(values), lambda numbers: run.values(max(number, last or 0), at=now, **numbers)
            )
            return
        self._step = number
        columns = {"loss": found.loss, "lr": found.lr, "grad_norm": found.grad_norm}
        size = found.batch_size if isinstance(found.batch_size, int) else None
        self._late.add({**found.more, **columns}, lambda numbers: run.step(number, at=now, batch_size=size, **numbers))

    @quiet
    def log_images(self, values: Mapping[str, Any], step: int | None = None, **ignored: Any) -> None:
        """Record the images that are files; accelerate writes others nowhere."""
        for images in values.values():
            for image in images if isinstance(images, (list, tuple)) else [images]:
                path = image if isinstance(image, (str, os.PathLike)) else getattr(image, "filename", None)
                if path and self.tracker is not None:
                    self.tracker.image(os.fspath(path), self._step if step is None else step)

    @quiet
    def finish(self) -> None:
        """Write what is left, and the end of the training."""
        self._training.end()

    def _begin(self, config: Mapping[str, Any]) -> None:
        if not self._training.is_open:
            state = PartialState()
            rank = 0 if state.is_main_process else int(state.process_index)
            self._training.begin(self._framework, config, rank=rank, at=self._started_at)


def _next_step(last: int | None, *, is_step: bool) -> int:
    """Return the number of a step that was logged without one."""
    if last is None:
        return 1
    return last + 1 if is_step else last
