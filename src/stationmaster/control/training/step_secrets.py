"""The secrets of a recipe's steps: which of them may go to the job's machine."""

from __future__ import annotations

from stationmaster.control.policy import Policy
from stationmaster.control.rental.machine import may_get_secrets
from stationmaster.control.step import failed_try, give_up, wait
from stationmaster.control.world import Visit, World
from stationmaster.errors import DeliveryBusy, DeliveryRefused, SecretRefused
from stationmaster.model import Job, Reason
from stationmaster.store.writes import Told, Write

_OURS = ("ssh", "loopback")  # machines that no stranger has root on
_HUB_TOKEN = "HF_TOKEN"
_HUB_TOKENS_BEGIN_WITH = "hf_"  # also those that a recipe calls by another name

_WHERE = "https://huggingface.co/settings/tokens"


async def secrets_of(job: Job, world: World) -> dict[str, str]:
    """What the recipe declares by name; nothing where nobody could say whether the machine is the right one.

    Raises SecretRefused for a token that may write on a machine that is not ours, and DeliveryBusy while the Hub
    cannot be asked.
    """
    if not may_get_secrets(job, world.policy):
        return {}
    return await sendable_secrets(job, world)


async def sendable_secrets(job: Job, world: World) -> dict[str, str]:
    """What the recipe declares and somebody has set, with every token of the Hub checked. Raises as `secrets_of`."""
    recipe = world.recipe(job.spec.recipe).recipe
    found = {name: value for name in recipe.secrets if (value := world.secrets(name)) is not None}
    if job.spec.provider not in _OURS:
        for name, value in found.items():
            if name == _HUB_TOKEN or value.startswith(_HUB_TOKENS_BEGIN_WITH):
                await _require_reader(name, value, world)
    return found


async def _require_reader(name: str, token: str, world: World) -> None:
    try:
        if await world.only_reads(token):
            return
        said = f"{name} may write to the Hub, so it is not sent to a rented machine"
    except DeliveryRefused as problem:
        said = f"the Hub does not accept {name}: {problem}"
    except DeliveryBusy as problem:
        said = f"the Hub could not be asked whether {name} may only read: {problem}"
        raise DeliveryBusy(said, retry_after_seconds=problem.retry_after_seconds) from problem
    raise SecretRefused(said, hint=f"create a token with the role read at {_WHERE} and set HF_READ_TOKEN to it")


def refusal_in_words(problem: SecretRefused) -> str:
    return f"{problem}; hint: {problem.hint}" if problem.hint else str(problem)


def held_back(
    job: Job, problem: SecretRefused | DeliveryBusy, visit: Visit, policy: Policy, *, has_trained: bool
) -> Write:
    """The steps wait for a secret that was not sent: for the Hub's answer, or, once there is a model, for a person.

    A job that has trained nothing yet is over: another try would end the same way.
    """
    if isinstance(problem, SecretRefused) and not has_trained:
        return give_up(job, Reason.ACCESS_REFUSED, now=visit.now, explanation=refusal_in_words(problem))
    after, seconds, failures = failed_try(job, policy)
    told = () if failures else (Told(kind="secret_held_back", payload={"problem": str(problem)}),)
    return wait(after, seconds, events=told)
