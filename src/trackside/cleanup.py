"""Before the machine is returned: stop everything of the job and run the recipe's cleanup."""

from __future__ import annotations

import io
from typing import Any

from trackside.report.logs import write_logs
from trackside.report.status import build_status
from trackside.root import CLEANUP, Root
from trackside.steps import containers
from trackside.steps.plan import Plan, read_plan
from trackside.steps.start import start
from trackside.steps.stop import stop

_TAIL_LINES = 20
_TAIL_CHARACTERS = 2000


def clean_up(root: Root, plan: Plan, *, grace_seconds: float) -> dict[str, Any]:
    """Stop the job's steps and containers, then start the recipe's cleanup, once; repeated calls return its state.

    The answer's state: `nothing` to do, `running`, `done`, or `failed` with the end of the steps' logs.
    """
    stop(root, plan, grace_seconds=grace_seconds)
    part = Root(root.path, part=CLEANUP)
    if not plan.cleanup:
        containers.remove_all(root, plan)
        return {"state": "nothing", "steps": [], "tail": ""}
    own = read_plan(part)
    if not build_status(part, own, since=None)["started"]:
        containers.remove_all(root, plan)
    start(part, own, secrets={})
    seen = build_status(part, own, since=None)
    steps = [{name: step[name] for name in ("name", "state", "exit_code", "failure")} for step in seen["steps"]]
    if seen["finished"] is None:
        return {"state": "running", "steps": steps, "tail": ""}
    containers.remove_all(root, plan)
    is_done = all(step["state"] == "done" for step in steps)
    return {"state": "done" if is_done else "failed", "steps": steps, "tail": "" if is_done else _tail(part)}


def _tail(part: Root) -> str:
    text = io.BytesIO()
    write_logs(part, text, step=None, tail_lines=_TAIL_LINES)
    return text.getvalue().decode("utf-8", "replace")[-_TAIL_CHARACTERS:]
