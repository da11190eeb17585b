"""Creates the boto3 client for an S3 service, and translates its errors."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from stationmaster.errors import ConfigInvalid, DeliveryBusy, DeliveryError, DeliveryRefused

_CONNECT_SECONDS = 15
_READ_SECONDS = 60
_CALLS_AT_ONCE = 16
_SESSION_LOCK = threading.Lock()
_WRONG_KEY = {
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "AccessDenied",
    "InvalidToken",
    "ExpiredToken",
    "403",
    "401",
}


def new_client(*, endpoint: str | None, region: str, access_key: str, secret_key: str) -> Any:
    """Create a client that is safe to share between threads. Raises ConfigInvalid if boto3 is not installed."""
    try:
        import boto3  # type: ignore[import-untyped]  # the extra `r2`; it ships no types
        from botocore.config import Config  # type: ignore[import-untyped]  # likewise
    except ImportError:
        raise ConfigInvalid(
            "a bucket needs boto3, which is not installed", hint="pip install 'stationmaster[r2]'"
        ) from None
    logging.getLogger("botocore").setLevel(logging.WARNING)  # its debug lines hold signatures
    config = Config(
        signature_version="s3v4",
        s3={"addressing_style": "path" if endpoint else "auto"},
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        max_pool_connections=_CALLS_AT_ONCE,
        retries={"mode": "standard", "total_max_attempts": 3},
        # We send our own checksums; some services reject those that boto3 adds by default.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    with _SESSION_LOCK:  # clients are thread-safe, sessions are not
        return _session(boto3).client(
            "s3",
            endpoint_url=endpoint,
            region_name=region,
            aws_access_key_id=access_key,
            aws_secret_access_key=secret_key,
            config=config,
        )


@contextmanager
def translate_errors(doing: str) -> Iterator[None]:
    """Raise boto3's errors as DeliveryRefused or DeliveryBusy; `doing` begins the message: "reading s3://…".

    Only the service's error code is passed on: its messages may contain parts of a signature.
    """
    from botocore.exceptions import (  # type: ignore[import-untyped]  # it ships no types
        BotoCoreError,
        ClientError,
        HTTPClientError,
    )
    from botocore.exceptions import ConnectionError as LinkError

    try:
        yield
    except ClientError as problem:
        raise _from_answer(doing, code_of(problem), _status_of(problem)) from None
    except (LinkError, HTTPClientError) as problem:
        raise DeliveryBusy(f"{doing} failed: the service does not answer ({type(problem).__name__})") from None
    except BotoCoreError as problem:
        raise DeliveryRefused(f"{doing} failed: {type(problem).__name__}") from None


@cache
def _session(boto3: Any) -> Any:
    """One session per process: loading the description of S3 is the slowest step here."""
    return boto3.session.Session()


def code_of(problem: Any) -> str:
    """The service's error code."""
    return str(problem.response.get("Error", {}).get("Code", ""))


def is_missing(problem: Any) -> bool:
    """Whether the error means that there is no such object or upload. A missing bucket does not count."""
    return code_of(problem) in ("NoSuchKey", "404", "NotFound", "NoSuchUpload")


def _status_of(problem: Any) -> int:
    return int(problem.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _from_answer(doing: str, code: str, status: int) -> DeliveryError:
    if code == "NoSuchBucket":
        return DeliveryRefused(f"{doing} failed: there is no such bucket", hint="check bucket.name")
    if code in _WRONG_KEY:
        return DeliveryRefused(
            f"{doing} is not allowed ({code})", hint="check bucket.access_key, bucket.secret_key and their permissions"
        )
    if status >= 500 or status == 429 or code in ("SlowDown", "RequestTimeout", "OperationAborted"):
        return DeliveryBusy(f"{doing} failed temporarily ({code or status})")
    return DeliveryRefused(f"{doing} was refused ({code or status})")
