"""Runs one of the makers' tools and returns its output."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

_LIMIT_SECONDS = 20.0  # a driver that was not in use needs several seconds to wake

_KILLED_SECONDS = 2.0

Ask = Callable[..., Awaitable[str]]
"""Runs a tool with these arguments. Raises ToolMissing and ToolFailed."""


class ToolMissing(Exception):
    """The tool is not installed, so there is no GPU of its maker that could be used."""


class ToolFailed(Exception):
    """The tool is installed, and fails or hangs; the message names it."""


def tools_in(environment: Mapping[str, str]) -> Ask:
    """The tools on this environment's PATH."""

    async def ask(tool: str, *arguments: str) -> str:
        path = shutil.which(tool, path=environment.get("PATH", ""))
        if path is None:
            raise ToolMissing(tool)
        return await _output(tool, path, *arguments, environment=environment)

    return ask


async def _output(tool: str, path: str, *arguments: str, environment: Mapping[str, str]) -> str:
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            path, *arguments, env=dict(environment), stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
        )
    except OSError as problem:
        raise ToolFailed(f"{tool} cannot be started: {problem.strerror}") from problem
    try:
        async with asyncio.timeout(_LIMIT_SECONDS):
            output, errors = await process.communicate()
    except TimeoutError:
        raise ToolFailed(f"{tool} does not answer") from None
    finally:
        if process.returncode is None:
            process.kill()
            with suppress(TimeoutError):  # a tool that hangs in its driver cannot be killed
                async with asyncio.timeout(_KILLED_SECONDS):
                    await process.wait()
    text = output.decode("utf-8", "replace")
    if process.returncode != 0:
        said = (errors.decode("utf-8", "replace").strip() or text.strip()).splitlines()
        raise ToolFailed(f"{tool} fails: {said[0] if said else f'exit code {process.returncode}'}")
    return text
