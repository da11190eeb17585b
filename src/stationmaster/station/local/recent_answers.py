"""The last answers to questions that many ask again: they are reused as long as nothing has changed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Answer = TypeVar("Answer")

_KEPT = 16


class RecentAnswers:
    """Safe to use from several threads; two that ask the same at once may both do the work."""

    def __init__(self, most: int = _KEPT) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[str, Any]] = OrderedDict()

    def get(
        self,
        question: Hashable,
        version: str,
        make: Callable[[], Answer],
        *,
        is_small: Callable[[Answer], bool] = lambda _: True,
    ) -> Answer:
        """The answer of this version. A new one is kept if `is_small`, in place of the longest unused one."""
        with self._lock:
            kept = self._kept.get(question)
            if kept is not None and kept[0] == version:
                self._kept.move_to_end(question)
                found: Answer = kept[1]
                return found
        answer = make()
        if is_small(answer):
            with self._lock:
                self._kept[question] = (version, answer)
                self._kept.move_to_end(question)
                while len(self._kept) > self._most:
                    self._kept.popitem(last=False)
        return answer
