"""Workers that are killed or stopped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.chaos.loopback import WorkerForge, worker_forge


@pytest.fixture
def forge() -> Iterator[WorkerForge]:
    """The workers of a test end with it."""
    forge = worker_forge()
    yield forge
    forge.kill_all()
