"""The secrets of a recipe's steps: which of them may go to the job's machine."""

from __future__ import annotations

from collections.abc import Mapping

from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.step import failed_try, give_up, wait
from stationmaster.control.flow.world import Visit, World
from stationmaster.control.machine.access import access_of, may_get_secrets
from stationmaster.errors import DeliveryBusy, DeliveryRefused, SecretRefused
from stationmaster.model import Job, Reason
from stationmaster.recipes.schema import Recipe
from stationmaster.store.writes import NewEvent, Write

_OURS = ("ssh", "loopback")  # providers whose machines no stranger has root on
_HUB_TOKEN = "HF_TOKEN"
_HUB_TOKENS_BEGIN_WITH = "hf_"  # also under another name in a recipe

_WHERE = "https://huggingface.co/settings/tokens"


async def secrets_of(job: Job, recipe: Recipe, world: World) -> dict[str, str]:
    """The secrets that the recipe declares; none where the machine's host key could not be verified.

    Raises SecretRefused for a token that may write on a machine that is not ours, and DeliveryBusy while the Hub
    cannot be asked.
    """
    if not may_get_secrets(access_of(job), world.policy):
        return {}
    return await sendable_secrets(job, recipe, world)


async def sendable_secrets(job: Job, recipe: Recipe, world: World) -> dict[str, str]:
    """The declared secrets that are set, with every Hub token checked. Raises as `secrets_of`."""
    found = {name: value for name in recipe.secrets if (value := world.secrets(name)) is not None}
    for name, value in tokens_to_check(found, provider=job.spec.provider).items():
        await _require_reader(name, value, world)
    return found


def tokens_to_check(secrets: Mapping[str, str], *, provider: str) -> dict[str, str]:
    """Those of the secrets that are Hub tokens and would go to a machine of a stranger."""
    if provider in _OURS:
        return {}
    return {
        name: value for name, value in secrets.items() if name == _HUB_TOKEN or value.startswith(_HUB_TOKENS_BEGIN_WITH)
    }


def may_write(name: str) -> SecretRefused:
    return _refused(f"{name} may write to the Hub, so it is not sent to a rented machine")


def not_accepted(name: str, problem: object) -> SecretRefused:
    return _refused(f"the Hub does not accept {name}: {problem}")


def _refused(problem: str) -> SecretRefused:
    return SecretRefused(problem, hint=f"create a token with the role read at {_WHERE} and set HF_READ_TOKEN to it")


async def _require_reader(name: str, token: str, world: World) -> None:
    try:
        if not await world.only_reads(token):
            raise may_write(name)
    except DeliveryRefused as problem:
        raise not_accepted(name, problem) from problem
    except DeliveryBusy as problem:
        message = f"the Hub could not be asked whether {name} may only read: {problem}"
        raise DeliveryBusy(message, retry_after_seconds=problem.retry_after_seconds) from problem


def refusal_in_words(problem: SecretRefused) -> str:
    return f"{problem}; hint: {problem.hint}" if problem.hint else str(problem)


def held_back(
    job: Job, problem: SecretRefused | DeliveryBusy, visit: Visit, policy: Policy, *, has_trained: bool
) -> Write:
    """Steps that wait for a secret that was not sent: for the Hub's answer or, once there is a model, for a person.

    A job that has trained nothing yet is over: another try would end the same way.
    """
    if isinstance(problem, SecretRefused) and not has_trained:
        return give_up(job, Reason.ACCESS_REFUSED, now=visit.now, explanation=refusal_in_words(problem))
    after, seconds, failures = failed_try(job, policy)
    events = () if failures else (NewEvent(kind="secret_held_back", payload={"problem": str(problem)}),)
    return wait(after, seconds, events=events)
