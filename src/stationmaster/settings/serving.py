"""Settings of the HTTP service."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from stationmaster.durations import Duration
from stationmaster.settings.addresses import BaseUrl, is_host, is_loopback_host
from stationmaster.settings.section import Section

MIB = 1024 * 1024


def checked_host_name(value: str) -> str:
    """Return a host name or IP address without a port. Raises ValueError for anything else."""
    name = value.strip("[]").lower()
    try:
        ipaddress.ip_address(name)
    except ValueError:
        if not is_host(name) or any(sign in name for sign in ":/*@"):
            raise ValueError("must be host names without a scheme or port, such as station.example.org") from None
    return name


class ServeSettings(Section):
    """The HTTP service: `stationmaster serve` and `stationmaster up`."""

    host: str = "127.0.0.1"
    """Address that the HTTP service listens on."""
    port: int = Field(default=8080, ge=0, le=65535)
    """Port that the HTTP service listens on; 0 picks a free one."""
    public_url: BaseUrl | None = None
    """URL at which rented machines reach the HTTP service to upload models; empty: upload URLs are sent over SSH."""
    user_providers: tuple[str, ...] = ()
    """Providers that users may choose besides the default one. Administrators may choose any."""
    user_datasets: tuple[str, ...] = ()
    """Beginnings of the dataset addresses that users may train on besides their uploads, such as
    s3://pictures/shared/ or hf://datasets/anna/. They are read with your keys. Empty: uploads only."""
    user_adopt_hosts: tuple[str, ...] = ()
    """Names in ssh.hosts on which users may adopt trainings; it logs in there with your keys. Administrators may adopt
    on any machine."""
    auth: bool = True
    """Whether requests need a token or a signed-in browser. Without, every request is the administrator's; possible
    only on a loopback address."""
    hosts: tuple[Annotated[str, AfterValidator(checked_host_name)], ...] = ()
    """Further host names that the HTTP service answers to, besides loopback, its own address and public_url."""
    proxies: tuple[str, ...] = ()
    """Addresses of reverse proxies whose X-Forwarded-For and X-Forwarded-Proto headers are believed."""
    tls_cert: Path | None = None
    """File with the TLS certificate chain (PEM); empty serves plain HTTP."""
    tls_key: Path | None = None
    """File with the private key of tls_cert (PEM)."""
    requests_per_minute: int = Field(default=1200, ge=0)
    """Limit on requests per minute and user, or per address without a token; 0 sets no limit."""
    connections: int = Field(default=2000, ge=10)
    """Limit on open connections of one `serve` process. At the limit, a new one replaces one that waits for its client,
    such as a half request, first of the address that has most of them; if there is none, it is answered with 503."""
    connections_per_address: int = Field(default=500, ge=0)
    """Limit on open connections per client address, not counted for the addresses in proxies; 0 sets no limit."""
    head_timeout: Duration = Field(default=10.0, gt=0)
    """Time that a client has for a TLS handshake, and for sending the line and the headers of a request."""
    body_timeout: Duration = Field(default=20.0, gt=0)
    """Longest pause in the body of a request; after three times as long it must have arrived at 1 KiB per second."""
    idle_timeout: Duration = Field(default=5.0, gt=0)
    """Time that an open connection may wait for its next request."""
    unread_timeout: Duration = Field(default=60.0, gt=0)
    """Time after which an answer is dropped whose client does not read it."""
    streams: int = Field(default=1000, ge=0)
    """Limit on open live streams of one `serve` process; at most half of its connections."""
    streams_per_user: int = Field(default=50, ge=0)
    """Limit on open live streams per user and `serve` process."""
    largest_upload_bytes: int = Field(default=64 * MIB, ge=MIB)
    """Limit for one uploaded piece of a dataset and for imported metrics, in bytes."""
    largest_dataset_bytes: int = Field(default=20 * 1024 * MIB, ge=1)
    """Largest dataset that may be uploaded, in bytes."""
    dataset_bytes_per_user: int = Field(default=60 * 1024 * MIB, ge=1)
    """Limit for all uploaded datasets of one user, in bytes; those not used for 3 days are removed."""
    free_disk_bytes: int = Field(default=2 * 1024 * MIB, ge=0)
    """Bytes of disk space that uploads of datasets leave free."""

    @model_validator(mode="after")
    def _safe(self) -> ServeSettings:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("tls_cert and tls_key need each other")
        if not self.auth and not is_loopback_host(self.host):
            raise ValueError("auth can only be off on a loopback address; set host to 127.0.0.1 or auth to true")
        return self

    @property
    def is_https(self) -> bool:
        """Whether browsers reach the service by https."""
        return self.tls_cert is not None or (self.public_url or "").startswith("https://")
