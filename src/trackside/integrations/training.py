"""The `Run` of a framework's training: opened when the training starts, closed at its end or the program's."""

from __future__ import annotations

import atexit
import platform
import sys
from typing import Any, Mapping

from trackside.collector import Run, is_out_of_memory


class Training:
    """Opens a `Run` in the first process of a training and writes the training's start and end.

    The other processes of the training write only an out-of-memory error. A `Run` that the script opened stays open:
    the script's `with` writes its start and end.
    """

    def __init__(self, run: Run | None = None) -> None:
        self.run = run
        self._given = run is not None
        self._options: dict[str, Any] | None = None

    @property
    def is_open(self) -> bool:
        """Whether a training has begun and not ended."""
        return self._options is not None

    def begin(
        self,
        framework: str,
        config: Mapping[str, Any],
        *,
        total_steps: int | None = None,
        rank: int = 0,
        at: float | None = None,
    ) -> None:
        """Open the run and write the start of the training, which was at `at` by the wall clock, or is now."""
        if self.is_open:
            self.end()
        self._options = {"framework": framework, "config": config, "total_steps": total_steps, "rank": rank}
        if self._given:
            return
        # Frameworks have no hook for an error that ends the program, or for a script that forgets to finish.
        atexit.register(self._end_with_the_program)
        if rank == 0:
            self.run = Run(**self._options)
            self.run.info(**_versions(framework))
            self.run.event("training_start", at=at)

    def out_of_memory(self, error: BaseException | None = None, **details: Any) -> None:
        """Write an out-of-memory error, from any process of the training."""
        if error is not None:
            details["message"] = str(error)[:500]
        if self.run is not None:
            self.run.event("oom_error", **details)
        elif self._options is not None:
            run = Run(**self._options)
            run.event("oom_error", rank=self._options["rank"], **details)
            run.close()

    def end(self, error: BaseException | None = None) -> None:
        """Write the end of the training, after the error that caused it, and close the run. May be repeated."""
        if not self.is_open:
            return
        if not self._given:
            atexit.unregister(self._end_with_the_program)
            if error is not None and is_out_of_memory(error):
                self.out_of_memory(error)
            if self.run is not None:
                self.run.event("training_end")
                self.run.close()
                self.run = None
        self._options = None

    def _end_with_the_program(self) -> None:
        # Python keeps the error that ended the program, if one did.
        self.end(getattr(sys, "last_exc", None) or getattr(sys, "last_value", None))


def _versions(framework: str) -> dict[str, str]:
    """Return the versions of what trains, as far as it is loaded."""
    found = {name: getattr(sys.modules.get(name), "__version__", None) for name in (framework, "torch")}
    known = {name + "_version": str(version) for name, version in found.items() if version is not None}
    return {"python_version": platform.python_version(), **known}
