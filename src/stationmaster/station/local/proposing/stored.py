"""Stored proposals as the values that faces work with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stationmaster.model import AdoptedTraining, AppliedAdvice, Offer, Quote, SkippedAdvice
from stationmaster.station.proposals import OfferTerms, PlannedConfig, PlannedStep, Proposal, Terms
from stationmaster.store.codec import known_fields
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
    """Fields that this version does not know are left out: a newer one may have stored the proposal."""
    known = dict(data)
    known["quote"] = known_fields(Quote, known["quote"])
    known["steps"] = tuple(known_fields(PlannedStep, {**step, "argv": tuple(step["argv"])}) for step in known["steps"])
    known["configs"] = tuple(known_fields(PlannedConfig, config) for config in known.get("configs", ()))
    known["notes"] = tuple(known["notes"])
    known["applied"] = tuple(known_fields(AppliedAdvice, each) for each in known.get("applied", ()))
    known["skipped"] = tuple(known_fields(SkippedAdvice, each) for each in known.get("skipped", ()))
    known["offers"] = tuple(_offer_terms(each) for each in known.get("offers", ()))
    adopted = known.get("adopted")
    if adopted is not None:
        known["adopted"] = known_fields(AdoptedTraining, {**adopted, "unknown": tuple(adopted["unknown"])})
    return known_fields(Terms, known)


def _offer_terms(data: Mapping[str, Any]) -> OfferTerms:
    values = {
        "offer": known_fields(Offer, data["offer"]),
        "quote": known_fields(Quote, data["quote"]),
        "notes": tuple(data["notes"]),
    }
    return known_fields(OfferTerms, {**data, **values})
