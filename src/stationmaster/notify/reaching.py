"""Whether a web address answers, found out without a request that its owner could take for a message."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from urllib.parse import urlsplit

from stationmaster.errors import NotifyBusy, NotifyRefused

_SECONDS = 10.0


async def reach(url: str) -> str:
    """Connect, with TLS for https, and hang up. Raises NotifyBusy, or NotifyRefused for an invalid certificate."""
    address = urlsplit(url)
    host, tls = address.hostname or "", address.scheme == "https"
    try:
        async with asyncio.timeout(_SECONDS):
            context = await asyncio.to_thread(ssl.create_default_context) if tls else None
            _, writer = await asyncio.open_connection(host, address.port or (443 if tls else 80), ssl=context)
    except ssl.SSLCertVerificationError as problem:
        raise NotifyRefused(f"the certificate of {host} is not valid: {problem.verify_message}") from None
    except (OSError, TimeoutError, ValueError) as problem:  # ValueError: a host name that is none
        raise NotifyBusy(f"{host} cannot be reached: {type(problem).__name__}") from None
    writer.close()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(1.0):
            await writer.wait_closed()
    return f"{host} answers"
