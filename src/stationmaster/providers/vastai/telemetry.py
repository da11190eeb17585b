"""Reads all instances of an account for monitoring."""

from __future__ import annotations

from stationmaster.providers.vastai.answer_limits import MOST_ROWS
from stationmaster.providers.vastai.calls import Calls
from stationmaster.providers.vastai.client import read_instance_pages
from stationmaster.providers.vastai.telemetry_rows import Telemetry, parse_telemetry


async def read_telemetry(calls: Calls) -> Telemetry:
    """Read every page of the list, without checking that it is complete. Raises ProviderError if it cannot be read."""
    pages = await read_instance_pages(calls, at_once=True)  # so that a monitoring cycle stays short
    return parse_telemetry([one for page in pages for one in page.instances][:MOST_ROWS])
