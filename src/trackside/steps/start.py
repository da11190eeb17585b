"""Start the supervisor, once, however often it is called."""

from __future__ import annotations

import os
import time

from trackside.code_cache import fill_code_cache
from trackside.machine import clock
from trackside.root import Root
from trackside.steps.decide import Finished, decide
from trackside.steps.handover import discard_secrets, leave_secrets, look_for_secrets
from trackside.steps.launch import detach
from trackside.steps.observe import Observer, settle
from trackside.steps.plan import Plan
from trackside.steps.supervisor_lock import is_supervised, sign_lock, take_supervisor_lock
from trackside.steps.tries import Facts

_POLL_SECONDS = 0.01
_RECEIPT_LIMIT_SECONDS = 0.7


def start(root: Root, plan: Plan, *, secrets: dict[str, str]) -> None:
    """Make sure that a supervisor runs and has the secrets, unless the plan is finished. May be repeated.

    A finished plan's secrets are left nowhere, also while its supervisor still waits for what ran beside the steps.
    """
    root.make_folders()
    if not root.part:
        fill_code_cache(root.own)
    lock = take_supervisor_lock(root)
    if lock is not None:
        try:
            facts = _observe(root, plan)
            settle(root, plan, facts)
            if isinstance(decide(plan, facts), Finished):
                return
            if secrets:
                leave_secrets(root, secrets)
            _launch(root, lock)
        finally:
            os.close(lock)
    elif secrets:
        if isinstance(decide(plan, _observe(root, plan)), Finished):
            return
        leave_secrets(root, secrets)
    if secrets:
        _await_receipt(root)


def _observe(root: Root, plan: Plan) -> Facts:
    return Observer(root, plan).observe(now=clock.now())


def _launch(root: Root, lock: int) -> None:
    from trackside.steps.supervise import supervise  # slow to import, and most calls find a supervisor

    detach(
        "supervisor",
        lambda: supervise(root),
        log_path=root.supervisor_log,
        keep=lock,
        in_daemon=lambda: sign_lock(lock),
    )


def _await_receipt(root: Root) -> None:
    """Wait until the supervisor has read the secrets; remove them if it has died."""
    deadline = clock.seconds_since_boot() + _RECEIPT_LIMIT_SECONDS
    while look_for_secrets(root) is not None and clock.seconds_since_boot() < deadline:
        time.sleep(_POLL_SECONDS)
    if not is_supervised(root):
        discard_secrets(root)
