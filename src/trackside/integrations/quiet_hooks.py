"""Hooks that a framework calls: an error in one is logged and never reaches the training."""

from __future__ import annotations

import functools
import logging
from typing import Any, Callable, TypeVar, cast

_Hook = TypeVar("_Hook", bound=Callable[..., Any])
_log = logging.getLogger("trackside")


def quiet(hook: _Hook) -> _Hook:
    """Return the hook, without its errors: the first one is logged, and None is returned instead."""
    failed = False

    @functools.wraps(hook)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        nonlocal failed
        try:
            return hook(*args, **kwargs)
        except Exception:  # noqa: BLE001 - nothing may reach the training
            if not failed:
                failed = True
                _log.warning("trackside: %s could not record; the training goes on", hook.__qualname__, exc_info=True)
            return None

    return cast(_Hook, guarded)
