"""The events of a training of the exhibition, as workers would have written them, and when they happened."""

from __future__ import annotations

from typing import Any

from stationmaster.model import Outcome, State
from tests.support.browser.exhibited_run import Run, losses_of
from tests.support.browser.exhibits import FLUX, Exhibit

Happened = tuple[float, str, dict[str, Any]]

BEFORE_TRAINING = 190.0
"""Seconds from the submission to the start of the training."""
AFTER_TRAINING = 110.0
"""Seconds from the end of the training to the end of the job."""
STALL = {
    "isStalling": True,
    "confidence": "high",
    "reason": "no step for 12 min, while a step usually takes 2.9 s; the GPU is idle",
    "recommendation": "alert",
    "cause": "gpu_idle",
}


def asked_at(exhibit: Exhibit, *, now: float) -> float:
    return now - (exhibit.asked or exhibit.began + BEFORE_TRAINING)


def history_of(exhibit: Exhibit, run: Run, *, label: str, instance: str, asked: float, model: str) -> list[Happened]:
    found: list[Happened] = [
        (asked, "submitted", {"name": exhibit.name, "recipe": exhibit.recipe, "provider": "simulator"}),
        (asked + 1, "state", _move(State.QUEUED, State.PROVISIONING)),
        (asked + 2, "rental_requested", {"label": label}),
    ]
    if exhibit.state is State.PROVISIONING:
        agreed, offered = "an RTX 4090 or better for at most $0.40/h", "an RTX 4090 for $0.47/h"
        return [*found[:2], (asked + 4, "waiting_for_offer", {"agreed": agreed, "offered": offered})]
    rented = {"label": label, "provider_id": instance, "gpu": exhibit.card.name, "region": exhibit.card.region}
    checked = {"gpus": [exhibit.card.name], "driver": "580.65.06", "cuda": "13.0", "disk_free_gib": 94}
    found += [
        (asked + 21, "rental_held", {**rented, "price_per_hour_usd": exhibit.card.cents_per_hour / 100}),
        (asked + 88, "logged_in", {"host": "ssh4.vast.ai"}),
        (asked + 91, "machine_checked", checked),
        (asked + 92, "state", _move(State.PROVISIONING, State.TRANSFERRING_DATA)),
    ]
    if exhibit.state is State.TRANSFERRING_DATA:
        return found
    found += [
        (asked + 150, "data_verified", {"bytes": 41_800_000, "sha256": "9f" * 32}),
        (asked + 151, "state", _move(State.TRANSFERRING_DATA, State.EXECUTING)),
        (run.begin, "step", {"step": "train", "state": "running", "try": 1, "tries": 3}),
        (run.begin, "training_started", {"attempt": 1, "step": "train"}),
        *_training(exhibit, run),
    ]
    if exhibit.outcome is not None:
        found += _ending(exhibit, run, label=label, model=model)
    return sorted(found, key=lambda happened: happened[0])


def _training(exhibit: Exhibit, run: Run) -> list[Happened]:
    losses, found = losses_of(exhibit), list[Happened]()
    for step, at in run.steps:
        percent = 100 * step // exhibit.steps
        if percent in (25, 50, 75) and 100 * (step - 1) // exhibit.steps < percent:
            left = (exhibit.steps - step) / exhibit.pace
            facts = {"percent": percent, "step": step, "total_steps": exhibit.steps, "loss": round(losses[step - 1], 4)}
            found.append((at, "milestone", {**facts, "eta_seconds": left}))
    for pause in run.pauses:
        if pause.kind == "save":
            path = checkpoint_path(exhibit, pause.step)
            found.append((pause.end + 31, "checkpoint_safe", {"step": pause.step, "path": path, "size": 171_969_408}))
    if exhibit.stuck_for:
        flagged = run.end - exhibit.stuck_for + 4.5 * 60
        where = {"currentStep": exhibit.done, "totalSteps": exhibit.steps, "grace_minutes": 15.0}
        pace = {"steps_per_second": 0.0, "usual_steps_per_second": exhibit.pace, "checkpointStep": 1000}
        found.append((flagged, "stall_flagged", {**STALL, **where, **pace}))
    return [happened for happened in found if happened[0] <= run.end]


def _ending(exhibit: Exhibit, run: Run, *, label: str, model: str) -> list[Happened]:
    assert exhibit.outcome is not None
    assert exhibit.reason is not None
    end, failed = run.end, exhibit.outcome is Outcome.FAILED
    how = {"state": "failed", "exit_code": 1} if failed else {"state": "done", "exit_code": 0}
    found: list[Happened] = [(end, "step", {"step": "train", "try": 1, "tries": 1, **how})]
    if exhibit.outcome is Outcome.INCOMPLETE:
        found = [
            (end - 9, "desired", {"desired": "STOP"}),
            (end, "terminated", {"reason": exhibit.reason.value, "checkpointStep": exhibit.done}),
        ]
    found.append((end + 2, "state", _move(State.EXECUTING, State.FETCHING_RESULTS)))
    if not failed:
        found.append((end + 34, "model_safe", {"location": model, "size": 171_969_408}))
    found.append((end + 40, "state", _move(State.FETCHING_RESULTS, State.FINALIZING)))
    for place in exhibit.places:
        if place != "home":
            found.append((end + 55, "published", {"place": place, "location": address_of(exhibit, place, model)}))
    outcome = {"outcome": exhibit.outcome.value, "reason": exhibit.reason.value, "explanation": exhibit.explanation}
    found += [
        (end + 60, "outcome", outcome),
        (end + 61, "state", _move(State.FINALIZING, State.RELEASING)),
        (end + 105, "rental_gone", {"label": label}),
        (end + AFTER_TRAINING, "state", _move(State.RELEASING, State.ENDED)),
    ]
    return found


def checkpoint_path(exhibit: Exhibit, step: int | None) -> str:
    """Where the trainer of its recipe writes a checkpoint; None: the last one."""
    if exhibit.recipe == FLUX:
        name = f"{exhibit.name}_flux"
        return f"output/{name}/{name}.safetensors" if step is None else f"output/{name}/{name}_{step:09}.safetensors"
    return f"output/{exhibit.name}.safetensors" if step is None else f"output/{exhibit.name}-step{step:08}.safetensors"


def sample_path(exhibit: Exhibit, step: int, number: int) -> str:
    if exhibit.recipe == FLUX:
        return f"output/{exhibit.name}_flux/samples/{1_790_000_000_000 + step}__{step:09}_{number}.jpg"
    return f"output/sample/{exhibit.name}_{step:06}_{number:02}_20261116120000.png"


def address_of(exhibit: Exhibit, place: str, model: str) -> str:
    file = f"{exhibit.name}.safetensors"
    return {
        "home": model,
        "bucket": f"s3://trained-models/{exhibit.id}/{file}",
        "hub": f"hf://ann-and-me/{exhibit.name}/{file}",
    }[place]


def _move(before: State, after: State) -> dict[str, Any]:
    return {"from": before.value, "to": after.value, "attempt": 1}
