"""The specification of a training of the exhibition, and its model in the catalogue."""

from __future__ import annotations

from collections.abc import Sequence

from stationmaster.control.publishing.catalogue import entry_of
from stationmaster.model import (
    Checkpoint,
    DatasetRef,
    Job,
    JobSpec,
    Place,
    Quote,
    Registering,
    Registration,
    SamplePicture,
    TrainedModel,
)
from stationmaster.money import MicroDollars, cost
from stationmaster.recipes.parameters import resolve
from stationmaster.recipes.registry import find
from tests.support.browser.exhibited_history import address_of
from tests.support.browser.exhibits import FLUX, PROMPTS, SDXL, Exhibit


def spec_of(exhibit: Exhibit, dataset: DatasetRef) -> JobSpec:
    price, hours = exhibit.card.price, exhibit.quoted_hours
    amounts = {name: cost(price, hours * part * 3600) for name, part in (("low", 0.75), ("expected", 1), ("high", 1.5))}
    quote = Quote(
        hours_low=0.75 * hours,
        hours_expected=hours,
        hours_high=1.5 * hours,
        price_per_hour=price,
        cost_low=amounts["low"],
        cost_expected=amounts["expected"],
        cost_high=amounts["high"],
        gpu=exhibit.card.name,
        past_runs=3,
        memory_low_gib=0.7 * exhibit.card.gib,
        memory_expected_gib=0.8 * exhibit.card.gib,
        memory_high_gib=0.9 * exhibit.card.gib,
        gpu_gib=exhibit.card.gib,
    )
    prompts = {"sample_prompts": PROMPTS} if exhibit.has_pictures else {}
    return JobSpec(
        id=exhibit.id,
        name=exhibit.name,
        recipe=exhibit.recipe,
        provider="simulator",
        dataset=dataset,
        quote=quote,
        max_seconds=3 * hours * 3600,
        max_spend=MicroDollars(2 * amounts["expected"]),
        trigger=exhibit.trigger,
        parameters=resolve(find(exhibit.recipe).recipe, {**exhibit.parameters, **prompts}),
        owner=exhibit.owner,
        retry_of=exhibit.retry_of,
    )


def model_of(job: Job, exhibit: Exhibit, previews: Sequence[Checkpoint], *, now: float) -> TrainedModel:
    assert job.reason is not None
    assert job.model.address is not None
    prompts = PROMPTS.replace("[trigger]", exhibit.trigger or "").splitlines()
    pictures = tuple(
        SamplePicture(path=str(each.location), text=prompts[place % len(prompts)])
        for place, each in enumerate(previews)
    )
    framework = {FLUX: "ai-toolkit", SDXL: "kohya"}.get(exhibit.recipe)
    slug = f"{exhibit.name}-{exhibit.id[-4:]}"
    model = entry_of(job, job.reason, slug=slug, framework=framework, previews=pictures, now=now)
    assert model is not None
    links = {"hub": f"https://huggingface.co/ann-and-me/{exhibit.name}"}
    places = [
        Place(kind=kind, address=address_of(exhibit, kind, job.model.address), link=links.get(kind))
        for kind in exhibit.places
    ]
    registered = Registration(state=Registering.DONE, note="registered as hills-v2", tries=1)
    registration = registered if exhibit.registered else model.registration
    return TrainedModel(
        **{name: getattr(model, name) for name in TrainedModel.__dataclass_fields__ if name != "registration"},
        registration=registration,
    ).at(*places)
