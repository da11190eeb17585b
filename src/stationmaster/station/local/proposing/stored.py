"""Stored proposals as the values that faces work with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stationmaster.model import AdoptedTraining, AppliedAdvice, Offer, Quote, SkippedAdvice
from stationmaster.station.proposals import OfferTerms, PlannedConfig, PlannedStep, Proposal, Terms
from stationmaster.store.proposals import StoredProposal


def proposal_of(kept: StoredProposal) -> Proposal:
    return Proposal(
        id=kept.id,
        owner=kept.spec.owner,
        job_id=kept.spec.id,
        created_at=kept.created_at,
        expires_at=kept.expires_at,
        terms=terms_of(kept.terms),
    )


def terms_of(data: Mapping[str, Any]) -> Terms:
    known = dict(data)
    known["quote"] = Quote(**known["quote"])
    known["steps"] = tuple(PlannedStep(**{**step, "argv": tuple(step["argv"])}) for step in known["steps"])
    known["configs"] = tuple(PlannedConfig(**config) for config in known.get("configs", ()))
    known["notes"] = tuple(known["notes"])
    known["applied"] = tuple(AppliedAdvice(**each) for each in known.get("applied", ()))
    known["skipped"] = tuple(SkippedAdvice(**each) for each in known.get("skipped", ()))
    known["offers"] = tuple(_offer_terms(each) for each in known.get("offers", ()))
    adopted = known.get("adopted")
    if adopted is not None:
        known["adopted"] = AdoptedTraining(**{**adopted, "unknown": tuple(adopted["unknown"])})
    return Terms(**known)


def _offer_terms(data: Mapping[str, Any]) -> OfferTerms:
    values = {"offer": Offer(**data["offer"]), "quote": Quote(**data["quote"]), "notes": tuple(data["notes"])}
    return OfferTerms(**{**data, **values})
