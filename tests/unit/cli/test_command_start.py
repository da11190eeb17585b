"""What a command has no need of it does not import: the start of a command is nearly all of its time."""

from __future__ import annotations

import gc
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from stationmaster.cli.commands import command_tree
from stationmaster.model import LogChunk, Outcome, Reason, State
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from stationmaster.store.writes import Write
from tests.support.commands.imports import run
from tests.support.jobs.spine_values import spec

_NEEDLESS = {
    "alembic",
    "asyncssh",
    "boto3",
    "fastapi",
    "httpx",
    "huggingface_hub",
    "numpy",
    "PIL",
    "pydantic_settings",
    "pygments",
    "rich",
    "sqlalchemy.dialects.postgresql",
    "sqlalchemy.orm",
    "stationmaster.api",
    "stationmaster.control.worker.worker",
    "stationmaster.delivery",
    "stationmaster.notify",
    "stationmaster.parsers",
    "stationmaster.providers",
    "stationmaster.recipes.schema",
    "stationmaster.remote.ssh",
    "stationmaster.simulator",
    "stationmaster.store.leases",
    "stationmaster.watch",
    "structlog",
    "uvicorn",
    "yaml",
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """With a job that has ended: for another one a command would start a worker."""
    with closing(Store(Database(f"sqlite:///{tmp_path}/stationmaster.db"))) as store:
        store.jobs.submit(spec("job"))
        (lease,) = store.leases.claim("w", limit=1, seconds=60)
        ended = replace(lease.job, state=State.ENDED, outcome=Outcome.COMPLETED, reason=Reason.FINISHED)
        log = LogChunk(attempt=1, stream="train", start=0, end=6, data=b"done.\n")
        store.leases.settle(lease, Write(job=ended, due_in=None, logs=(log,)))
    return tmp_path


@pytest.mark.parametrize(
    ("words", "said"),
    [(("jobs", "--all"), "COMPLETED"), (("show", "job"), "COMPLETED"), (("logs", "job"), "done.")],
)
def test_a_look_at_jobs_imports_only_what_it_needs(home: Path, words: tuple[str, ...], said: str) -> None:
    printed, modules = run("--home", str(home), *words)
    assert said in printed
    assert sorted(modules & _NEEDLESS) == []


def test_garbage_is_collected_again_once_a_command_runs() -> None:
    """Without it a worker would grow for as long as it lives."""
    gc.disable()  # as `main` does
    try:
        command_tree().commands["jobs"].make_context("jobs", ["--all"])
        assert gc.isenabled()
    finally:
        gc.enable()
        gc.unfreeze()
