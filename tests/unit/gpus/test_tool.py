"""A maker's tool that is asked for its GPUs."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from stationmaster.providers.gpus.tool import tools_in
from tests.support.asynchronous_tests import asynchronous, until
from tests.support.machines.gpu_tools import write_tool


@asynchronous
async def test_a_tool_is_gone_when_asking_it_was_interrupted(tmp_path: Path) -> None:
    """As when a worker leaves while a job looks for a GPU: nothing may outlive the event loop."""
    started = tmp_path / "started"
    write_tool(
        tmp_path, "slow-smi", f"#!/bin/sh\necho $$ > {started}.new && mv {started}.new {started}\nexec sleep 600\n"
    )
    asking = asyncio.ensure_future(tools_in({"PATH": f"{tmp_path}:{os.environ['PATH']}"})("slow-smi"))
    await until(started.exists, what="a tool that runs")
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)
