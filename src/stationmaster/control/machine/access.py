"""How the machine of a job's current attempt is reached, and whether it may get secrets."""

from __future__ import annotations

from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.world import World
from stationmaster.model import LIVE_RENTAL_STATES, Access, Job, Rental, SshAccess
from stationmaster.remote.host import Host


async def live_rental(job: Job, world: World) -> Rental | None:
    """The one rental that the job may use; the store allows only one live rental per job."""
    rentals = await world.rentals.of(job.id)
    return next((each for each in rentals if each.state in LIVE_RENTAL_STATES), None)


def host_of(job: Job, world: World) -> Host:
    """The caller of trackside on the job's machine, by the access that the login recorded."""
    return world.host(job, label_of(job), access_of(job))


def access_of(job: Job) -> Access:
    """How the job's machine is reached."""
    assert job.machine.access is not None, "no login to the machine has succeeded yet"
    return job.machine.access


def label_of(job: Job) -> str:
    """The label of the rental whose machine the job works on."""
    assert job.machine.label is not None, "no login to the machine has succeeded yet"
    return job.machine.label


async def drop_connection(job: Job, world: World) -> None:
    await world.forget_remote(label_of(job))


def may_get_secrets(access: Access, policy: Policy) -> bool:
    """Whether tokens and signed addresses may go to a machine that is reached this way: its host key is verified.

    The one place where this is decided; every sender of a secret asks here.
    """
    return not (isinstance(access, SshAccess) and access.unverified) or policy.ssh.allow_unverified
