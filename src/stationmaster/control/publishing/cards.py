"""The text of a model's card, from its row in the catalogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from stationmaster.delivery.huggingface import HubClient
from stationmaster.delivery.model_card import LICENCES, Card, EarlyEnd, Sample, is_repository
from stationmaster.model import Reason, TrainedModel

_WORDS = {
    Reason.STALLED: "ETA not converging",
    Reason.STOPPED_BY_USER: "stopped by its owner",
    Reason.CANCELLED_BY_USER: "stopped by its owner",
    Reason.HARD_LIMIT: "the limit of time or money was reached",
    Reason.MACHINE_STOPPED: "the machine was stopped",
    Reason.STEP_FAILED: "the trainer failed",
}


def card_of(model: TrainedModel, samples: Sequence[Sample], licence: Mapping[str, str]) -> Card:
    """The card; `samples` are those in the repository."""
    parameters = model.details.get("parameters") or {}
    return Card(
        name=model.name,
        recipe=model.recipe,
        file_name=model.file_name,
        sha256=model.sha256,
        framework=model.details.get("framework"),
        trigger=model.trigger,
        base_model=model.base_model,
        licence=licence,
        samples=samples,
        parameters={name: value for name, value in parameters.items() if isinstance(value, int | float)},
        facts=_facts(model),
        early_end=None if model.complete else _early_end(model),
    )


async def licence_of(model: TrainedModel, hub: HubClient) -> Mapping[str, str]:
    """The base model's licence: a known one, or the one on its own card; empty where neither exists."""
    base = model.base_model
    if base is None or not is_repository(base):
        return {}
    if base in LICENCES:
        return LICENCES[base]
    found = await hub.licence_of(base)
    return {} if found is None else {name: value for name, value in asdict(found).items() if value is not None}


def _facts(model: TrainedModel) -> dict[str, str]:
    known = {
        "pictures": model.details.get("images") or None,
        "steps trained": model.details.get("steps"),
        "first loss": model.details.get("first_loss"),
        "last loss": model.details.get("last_loss"),
    }
    return {name: f"{value:.6g}" for name, value in known.items() if value is not None}


def _early_end(model: TrainedModel) -> EarlyEnd:
    reason = Reason(model.details.get("reason") or Reason.STOPPED_BY_USER)
    words = _WORDS.get(reason, reason.value.lower().replace("_", " "))
    if reason is Reason.ANOMALY:
        words = ", ".join(model.details.get("anomalies") or ()) or words
    return EarlyEnd(
        reason=words,
        target_steps=model.details.get("target_steps"),
        completed_steps=model.details.get("steps"),
        stalled=reason is Reason.STALLED,
    )
