"""The steps and the plan's end as JSON for home."""

from __future__ import annotations

from typing import Any

from trackside.steps.decide import Finished, decide, is_given_up
from trackside.steps.plan import Plan, Step
from trackside.steps.tries import Facts, Try


def step_records(plan: Plan, facts: Facts) -> list[dict[str, Any]]:
    """Return one record per step. After a failed try its step is `pending` if another try follows."""
    is_finished = isinstance(decide(plan, facts), Finished)
    return [
        {
            "index": index,
            "name": step.name,
            "training": step.training,
            **_latest_try(step, facts.tries[index], is_finished=is_finished),
        }
        for index, step in enumerate(plan.steps)
    ]


def finished_record(finished: Finished | None) -> dict[str, Any] | None:
    if finished is None:
        return None
    return {
        "result": finished.result,
        "step": finished.step,
        "exit_code": finished.exit_code,
        "at": finished.at,
    }


def _latest_try(step: Step, tries: tuple[Try, ...], *, is_finished: bool) -> dict[str, Any]:
    last = tries[-1] if tries else None
    verdict = last.verdict if last else None
    return {
        "state": _state(last, is_last=is_finished or (last is not None and is_given_up(step, last))),
        "try": last.number if last else 0,
        "exit_code": verdict.exit_code if verdict else None,
        "signal": verdict.signal if verdict else None,
        "exit_known": verdict.exit_known if verdict else True,
        "started_at": last.started.wall if last else None,
        "ended_at": verdict.ended.wall if verdict else None,
        "pid": last.process.pid if last and last.process and not verdict else None,
        "failure": verdict.failure if verdict else None,
        "error": verdict.error if verdict else None,
        "cannot_pass": verdict.cannot_pass if verdict else False,
    }


def _state(last: Try | None, *, is_last: bool) -> str:
    if last is None:
        return "pending"
    if last.verdict is None:
        return "running"
    if last.verdict.result == "failed" and not is_last:
        return "pending"
    return last.verdict.result
