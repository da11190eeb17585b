"""Which secrets go to a job's machine: a token of the Hub that may write goes only to machines of one's own."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from stationmaster.control.flow.policy import Policy
from stationmaster.control.machine.step_secrets import held_back, sendable_secrets
from stationmaster.errors import DeliveryBusy, DeliveryRefused, SecretRefused
from stationmaster.model import Job, Reason, State
from tests.support.jobs.spine_values import job, visit

RECIPE: Any = type("Recipe", (), {"secrets": ("HF_TOKEN", "HUB_PASS", "WANDB_API_KEY")})
POLICY = Policy(retry_seconds=(5.0,))
ROLES = {"hf_reader": True, "hf_writer": False}


def world(**secrets: str) -> Any:
    async def only_reads(token: str) -> bool:
        if token == "hf_unknown":
            raise DeliveryRefused("401")
        if token not in ROLES:
            raise DeliveryBusy("503", retry_after_seconds=9.0)
        return ROLES[token]

    fields = {"secrets": staticmethod(secrets.get), "only_reads": staticmethod(only_reads)}
    return type("World", (), fields)()


def on(provider: str) -> Job:
    made = job()
    return replace(made, spec=replace(made.spec, provider=provider))


def sent(provider: str, **secrets: str) -> dict[str, str]:
    return asyncio.run(sendable_secrets(on(provider), RECIPE, world(**secrets)))


def test_a_token_that_only_reads_goes_along_with_all_that_is_no_token_of_the_hub() -> None:
    found = {"HF_TOKEN": "hf_reader", "WANDB_API_KEY": "w"}
    assert sent("vastai", **found) == found


@pytest.mark.parametrize("provider", ["vastai", "vastai:work", "simulator", "fake"])
@pytest.mark.parametrize("secrets", [{"HF_TOKEN": "hf_writer"}, {"HUB_PASS": "hf_writer"}, {"HF_TOKEN": "hf_unknown"}])
def test_one_that_may_write_or_that_the_hub_does_not_know_is_refused(provider: str, secrets: dict[str, str]) -> None:
    with pytest.raises(SecretRefused) as raised:
        sent(provider, **secrets)
    assert "HF_READ_TOKEN" in str(raised.value.hint)
    assert not any(value in str(raised.value) for value in secrets.values())


@pytest.mark.parametrize("provider", ["ssh", "loopback"])
def test_machines_of_ones_own_may_have_it(provider: str) -> None:
    assert sent(provider, HF_TOKEN="hf_writer") == {"HF_TOKEN": "hf_writer"}


def test_while_the_hub_does_not_answer_nobody_knows() -> None:
    with pytest.raises(DeliveryBusy, match="HF_TOKEN may only read"):
        sent("vastai", HF_TOKEN="old_kind")


def test_a_refusal_on_the_machine_ends_only_what_has_trained_nothing() -> None:
    running = job(state=State.EXECUTING)
    refusal = SecretRefused("HF_TOKEN may write", hint="set HF_READ_TOKEN")
    fresh = held_back(running, refusal, visit(running), POLICY, has_trained=False)
    assert fresh.job.reason is Reason.ACCESS_REFUSED
    trained = held_back(running, refusal, visit(running), POLICY, has_trained=True)
    assert (trained.job.state, [told.kind for told in trained.events]) == (State.EXECUTING, ["secret_held_back"])
    again = held_back(trained.job, refusal, visit(trained.job), POLICY, has_trained=True)
    assert again.events == (), "told once"
    asked_later = held_back(running, DeliveryBusy("503"), visit(running), POLICY, has_trained=False)
    assert asked_later.job.state is State.EXECUTING
