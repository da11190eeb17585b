"""The certificates that HTTPS connections trust, loaded once: it takes 50 ms."""

from __future__ import annotations

import ssl
from functools import cache

import httpx


@cache
def trusted_certificates() -> ssl.SSLContext:
    """What httpx would load for each client anew; all threads of the process may use it."""
    return httpx.create_ssl_context()
