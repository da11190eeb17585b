"""The tracker that is added to the `Accelerator` of a script of sd-scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping

from trackside.integrations.accelerate import TracksideTracker

if TYPE_CHECKING:
    from trackside.integrations.kohya_training import KohyaTraining


class KohyaTracker(TracksideTracker):
    """Records what a script logs, as its training understands it."""

    def __init__(self, training: KohyaTraining) -> None:
        super().__init__(run=training.run)
        self._kohya = training

    def log(self, values: Mapping[str, Any], step: int | None = None, **more: Any) -> None:
        """Record the values of a step, or others under the last step. The first call comes before the first step."""
        self._kohya.begin()
        found, number = self._kohya.step_values(values, step)
        super().log(found, number, **more)
