"""Publishes from the local copy what the machine could not send; then samples and the model card."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

from stationmaster.control.destinations.job_bucket import send_from_machine, send_local_copy
from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.step import wait
from stationmaster.control.flow.world import Visit, World
from stationmaster.control.machine.access import host_of
from stationmaster.control.publishing import delivery_notes as notes
from stationmaster.control.publishing.cards import card_of, licence_of
from stationmaster.control.publishing.catalogue import entry_of, is_complete, slug_of
from stationmaster.control.publishing.chain import hub_place, not_delivered, repository_of
from stationmaster.control.publishing.samples import ChosenSample, choose_samples
from stationmaster.delivery.hub_files import HubFile
from stationmaster.delivery.huggingface import HubClient
from stationmaster.delivery.model_card import Sample, render_card
from stationmaster.errors import DeliveryError, DeliveryRefused, RemoteError, TicketRefused
from stationmaster.model import (
    Desired,
    Job,
    ModelFile,
    OutputFile,
    Place,
    Reason,
    SamplePicture,
    ShownSample,
    TrainedModel,
)
from stationmaster.model.catalogue import BUCKET, HUB
from stationmaster.recipes.schema import OutputKind, Recipe
from stationmaster.store.writes import NewEvent, Write

SAMPLES = "samples"
CARD = "card"


@dataclass(frozen=True, slots=True, kw_only=True)
class SendOn:
    """Send the local copy of the model to a destination; a model that is only on the machine is sent from there."""

    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowSamples:
    """The chosen samples are in the model's repository."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowCard:
    """The model's card is in its repository, and lists only samples that are there."""

    reason: Reason


Publishing = SendOn | ShowSamples | ShowCard


def next_publishing(job: Job, reason: Reason, policy: Policy) -> Publishing | None:
    """What is still to be published of a job's model; None when everything is, or was given up."""
    if not job.model.address or job.desired is Desired.CANCEL_KEEP:
        return None
    if (link := _link_from_home(job, reason, policy)) is not None:
        return SendOn(link=link)
    if all(place.kind != HUB for place in notes.places(job)):
        return None
    if not _is_settled(job, SAMPLES):
        return ShowSamples()
    return None if _is_settled(job, CARD) else ShowCard(reason=reason)


async def publish(
    action: Publishing, job: Job, visit: Visit, world: World, *, limit_seconds: float | None = None
) -> Write:
    """Do one step of publishing; a failure is retried a few times and recorded, and never delays the release."""
    what = _name(action)
    try:
        async with asyncio.timeout(limit_seconds):
            match action:
                case SendOn():
                    return await _send_on(action.link, job, world)
                case ShowSamples():
                    return await _show_samples(job, world)
                case ShowCard():
                    return await _show_card(action.reason, job, visit, world)
    except TimeoutError:
        return not_delivered(job, what, DeliveryRefused("timed out"), world.policy)
    except (DeliveryError, RemoteError, TicketRefused) as problem:
        return not_delivered(job, what, problem, world.policy)
    except OSError as problem:  # a local file was deleted
        unreadable = DeliveryRefused(f"a file cannot be read at home: {problem.strerror}: {problem.filename}")
        return not_delivered(job, what, unreadable, world.policy)


def _name(action: Publishing) -> str:
    match action:
        case SendOn():
            return _from_home(action.link)
        case ShowSamples():
            return SAMPLES
        case ShowCard():
            return CARD


def _link_from_home(job: Job, reason: Reason, policy: Policy) -> str | None:
    there = {place.kind for place in notes.places(job)}
    wanted = [] if there else list(policy.links)
    if BUCKET not in there and _needs_a_copy_for_others(job, reason, policy):
        wanted.append(BUCKET)
    return next((link for link in wanted if not notes.has_failed(job, _from_home(link))), None)


def _needs_a_copy_for_others(job: Job, reason: Reason, policy: Policy) -> bool:
    """A service that downloads without credentials cannot read a private repository: it gets a signed address."""
    if not policy.comfydeploy.is_on or BUCKET not in policy.links:
        return False
    private = any(place.kind == HUB and not place.public for place in notes.places(job))
    return private and (is_complete(reason) or policy.comfydeploy.incomplete)


def _from_home(link: str) -> str:
    return f"{link} from home"


def _is_settled(job: Job, what: str) -> bool:
    return notes.is_done(job, what) or notes.has_failed(job, what)


async def _send_on(link: str, job: Job, world: World) -> Write:
    place = await (_hub_from_home if link == HUB else _bucket_from_home)(job, world)
    event = NewEvent(kind="published", payload={"place": link, "location": place.address})
    return wait(notes.with_place(job, place), 0.0, events=(event,))


async def _hub_from_home(job: Job, world: World) -> Place:
    hub = _hub(world)
    repo = await repository_of(job, hub, installation=world.store.installation_id)
    known, model = _saved(job)
    file = HubFile(name=known.name, size=known.size, sha256=known.sha256, path=model)
    await hub.upload(repo, [file], message=f"{file.name}, job {job.id}")
    await hub.require(repo, [file])
    return hub_place(repo, file.name, hub)


async def _bucket_from_home(job: Job, world: World) -> Place:
    job_bucket, (known, model) = world.destinations.bucket, _saved(job)
    assert job_bucket is not None, "a link that is set has its client"
    file = OutputFile(path=known.path, kind="checkpoint", size=known.size, mtime=0.0, sha256=known.sha256)
    if "://" in model:
        return Place(kind=BUCKET, address=await send_from_machine(file, job, host_of(job, world), job_bucket))
    return Place(kind=BUCKET, address=await send_local_copy(Path(model), file, job, job_bucket))


async def _show_samples(job: Job, world: World) -> Write:
    chosen = await _chosen(job, world)
    if chosen:
        hub, repo = _hub(world), _repo(job)
        files = [HubFile(name=one.name, size=one.size, sha256=one.sha256, path=one.location) for one in chosen]
        await hub.require(repo, await hub.put(repo, files, message="samples"))
    shown = tuple(ShownSample(url=one.name, text=one.text) for one in chosen)
    after = notes.with_done(notes.with_delivery(job, replace(notes.delivery_of(job), samples=shown)), SAMPLES)
    event = NewEvent(kind="samples_published", payload={"samples": [one.name for one in chosen]})
    return wait(after, 0.0, events=(event,) if chosen else ())


async def _show_card(reason: Reason, job: Job, visit: Visit, world: World) -> Write:
    hub, repo = _hub(world), _repo(job)
    model = await entry(job, reason, visit.recipe, world, now=job.state_since)
    assert model is not None, "what is in a repository has weights"
    samples = [Sample(url=one.url, text=one.text) for one in notes.delivery_of(job).samples]
    card = HubFile.of_text("README.md", render_card(card_of(model, samples, await licence_of(model, hub))))
    await hub.require(repo, await hub.put(repo, [card], message="card"))
    event = NewEvent(kind="card_published", payload={"repository": repo})
    return wait(notes.with_done(job, CARD), 0.0, events=(event,))


async def entry(job: Job, reason: Reason, recipe: Recipe, world: World, *, now: float) -> TrainedModel | None:
    """The model as the catalogue has it; None when the job left none."""
    previews = tuple(SamplePicture(path=one.location, text=one.text) for one in await _chosen(job, world))
    slug = slug_of(job, installation=world.store.installation_id)
    return entry_of(job, reason, slug=slug, framework=recipe.framework, previews=previews, now=now)


async def _chosen(job: Job, world: World) -> tuple[ChosenSample, ...]:
    files = await world.ask_store(world.store.checkpoints.of_job, job.id)
    at_home = [one for one in files if one.location and "://" not in one.location]
    if not any(one.kind == OutputKind.SAMPLE for one in at_home):
        return ()
    return await asyncio.to_thread(choose_samples, job, at_home)


def _saved(job: Job) -> tuple[ModelFile, str]:
    """The model as the machine had it, and where it is now."""
    assert job.model.file is not None, "only a model that is safe is published"
    assert job.model.address is not None
    return job.model.file, job.model.address


def _hub(world: World) -> HubClient:
    assert world.destinations.hub is not None, "a link that is set has its client"
    return world.destinations.hub


def _repo(job: Job) -> str:
    place = next(place for place in notes.places(job) if place.kind == HUB)
    owner, name, _ = place.address.removeprefix("hf://").split("/", 2)
    return f"{owner}/{name}"
