"""The `Run` of a framework's training: opened when the training starts, closed at its end or the program's."""

from __future__ import annotations

import atexit
import platform
import sys
from types import TracebackType
from typing import Any, Callable, Mapping

from trackside.collector import Run, is_out_of_memory
from trackside.integrations.quiet_hooks import quiet


class Training:
    """Opens a `Run` in the first process of a training and writes the training's start and end.

    The other processes of the training write only an out-of-memory error. A `Run` that the script opened stays open:
    the script's `with` writes its start and end.
    """

    def __init__(self, run: Run | None = None, *, before_end: Callable[[], None] | None = None) -> None:
        """`before_end` writes what is left; its errors are logged."""
        self.run = run
        self._before_end = before_end
        self._given = run is not None
        self._options: dict[str, Any] | None = None
        self._next_hook = sys.excepthook

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
        # At its exit Python starts no more threads, and a GPU's memory is read in one: too late for an error.
        self._next_hook, sys.excepthook = sys.excepthook, self._end_with_an_error
        atexit.register(self.end)
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
        if self._before_end is not None:
            quiet(self._before_end)()
        if not self._given:
            atexit.unregister(self.end)
            if sys.excepthook == self._end_with_an_error:
                sys.excepthook = self._next_hook
            if error is not None and is_out_of_memory(error):
                self.out_of_memory(error)
            if self.run is not None:
                self.run.event("training_end")
                self.run.close()
                self.run = None
        self._options = None

    def _end_with_an_error(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        try:
            self.end(error)
        finally:
            self._next_hook(kind, error, trace)


def _versions(framework: str) -> dict[str, str]:
    """Return the versions of what trains, as far as it is loaded."""
    found = {name: getattr(sys.modules.get(name), "__version__", None) for name in (framework, "torch")}
    known = {name + "_version": str(version) for name, version in found.items() if version is not None}
    return {"python_version": platform.python_version(), **known}
