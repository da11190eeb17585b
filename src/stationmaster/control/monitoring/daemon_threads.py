"""An executor whose threads do not keep the program from ending: a name that is being looked up can take a minute."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Thread
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class DaemonThreads(ThreadPoolExecutor):
    """A thread per call. An event loop takes no executor of another class."""

    def submit(
        self, call: Callable[Parameters, Result], /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Future[Result]:
        future: Future[Result] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(call(*args, **kwargs))
            except BaseException as problem:  # noqa: BLE001  # the caller raises it
                future.set_exception(problem)

        Thread(target=run, name="monitor-call", daemon=True).start()
        return future
