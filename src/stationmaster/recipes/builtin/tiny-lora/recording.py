"""What is recorded of the training: steps and events, by trackside where it runs beside it, else nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol


class Recording(Protocol):
    """The part of trackside's `Run` that is used here; none of it ever raises."""

    def step(
        self,
        step: int,
        loss: float | None = None,
        lr: float | None = None,
        grad_norm: float | None = None,
        batch_size: int | None = None,
    ) -> None: ...

    def event(self, kind: str, **details: Any) -> None: ...

    def image(self, path: Path, step: int | None = None) -> None: ...

    def close(self) -> None: ...


class NotRecorded:
    """Takes everything and keeps nothing."""

    def step(self, *_: Any, **__: Any) -> None: ...

    def event(self, *_: Any, **__: Any) -> None: ...

    def image(self, *_: Any, **__: Any) -> None: ...

    def close(self) -> None: ...


def start_recording(config: Mapping[str, Any], *, total_steps: int) -> Recording:
    """Begin to record, if trackside asks for it by its environment and can be imported."""
    if not os.environ.get("TRACKSIDE_DATABASE"):
        return NotRecorded()
    try:
        from trackside import Run

        run: Recording = Run(config=config, framework="tiny-lora", total_steps=total_steps)
    except Exception as problem:  # noqa: BLE001 - a training is never stopped by what is recorded of it
        print(f"nothing is recorded: {type(problem).__name__} {problem}", flush=True)
        return NotRecorded()
    return run
