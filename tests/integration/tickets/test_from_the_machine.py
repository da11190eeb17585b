"""The machine sends its files to the bucket: with trackside alone, and no address on any command line."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from stationmaster.control.destinations.job_bucket import bucket_key, send_from_machine, send_local_copy
from stationmaster.errors import DeliveryBusy, DeliveryRefused
from stationmaster.model import OutputFile
from stationmaster.model.intake_limits import ANSWER_BYTES
from stationmaster.remote.base import Completed
from stationmaster.remote.host import Host
from stationmaster.remote.local import LocalRemote
from stationmaster.store.store import Store
from stationmaster.store.tickets import TicketState
from tests.support.asynchronous_tests import asynchronous
from tests.support.jobs.spine_values import job
from tests.support.servers.s3_servers import S3Server

JOB = job("cats", attempt=2)


def a_model(host: Host, content: bytes) -> OutputFile:
    path = Path(host.path("output/model.safetensors"))
    path.write_bytes(content)
    return OutputFile(
        path="output/model.safetensors",
        kind="checkpoint",
        size=len(content),
        mtime=path.stat().st_mtime,
        sha256=hashlib.sha256(content).hexdigest(),
    )


class Overheard(LocalRemote):
    """Writes down every command that is run."""

    said: list[str]

    async def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float,
        most_bytes: int = ANSWER_BYTES,
    ) -> Completed:
        done = await super().run(argv, input=input, env=env, timeout=timeout, most_bytes=most_bytes)
        self.said += [*argv, *(env or {}).values(), done.stdout.decode(), done.stderr.decode()]
        return done


@asynchronous
async def test_a_file_is_sent_by_the_machine_verified_and_not_sent_again(
    open_job_bucket: Any, old_host: Host, store: Store
) -> None:
    host = old_host
    job_bucket, content = open_job_bucket(), os.urandom(300_000)
    file = a_model(host, content)
    location = await send_from_machine(file, JOB, host, job_bucket)
    assert location == job_bucket.bucket.location(bucket_key(JOB, file.path))
    assert b"".join(job_bucket.bucket.read(bucket_key(JOB, file.path))) == content
    assert await send_from_machine(file, JOB, host, job_bucket) == location
    assert [ticket.state for ticket in store.tickets.of_job(JOB.id)] == [TicketState.DONE]


@asynchronous
async def test_a_large_file_goes_in_parts(open_job_bucket: Any, old_host: Host) -> None:
    host = old_host
    job_bucket, content = open_job_bucket(largest_put_bytes=6 << 20), os.urandom(11 << 20)
    file = a_model(host, content)
    await send_from_machine(file, JOB, host, job_bucket)
    assert b"".join(job_bucket.bucket.read(bucket_key(JOB, file.path))) == content


@asynchronous
async def test_a_file_that_is_not_what_it_was_is_not_kept(open_job_bucket: Any, host: Host, store: Store) -> None:
    job_bucket = open_job_bucket()
    file = a_model(host, b"a" * 5000)
    Path(host.path(file.path)).write_bytes(b"b" * 5000)
    with pytest.raises(DeliveryRefused):
        await send_from_machine(file, JOB, host, job_bucket)
    Path(host.path(file.path)).write_bytes(b"a" * 4999)
    with pytest.raises(DeliveryRefused, match="4999"):
        await send_from_machine(file, JOB, host, job_bucket)
    assert list(job_bucket.bucket.listed()) == []
    assert {ticket.state for ticket in store.tickets.of_job(JOB.id)} == {TicketState.VOID}


@asynchronous
async def test_no_address_key_or_token_is_on_a_command_line_or_in_an_answer(
    open_job_bucket: Any, host: Host, seaweed: S3Server, tmp_path: Path
) -> None:
    job_bucket = open_job_bucket()
    remote = Overheard(root=tmp_path, environment={"PATH": "/usr/bin:/bin"})
    remote.said = []
    overheard = Host(remote, root=host.root, python=sys.executable)
    await send_from_machine(a_model(host, b"weights"), JOB, overheard, job_bucket)
    Path(host.path("output/model.safetensors")).write_bytes(b"others")
    with pytest.raises(DeliveryRefused) as told:
        await send_from_machine(
            dataclasses.replace(a_model(host, b"other"), sha256="ab" * 32), JOB, overheard, job_bucket
        )
    everything = "\n".join([*remote.said, str(told.value)])
    assert "upload" in everything
    for secret in ("X-Amz", "Signature", seaweed.secret_key, seaweed.access_key):
        assert secret not in everything


@asynchronous
async def test_a_bucket_that_is_away_may_be_tried_again_later(
    open_job_bucket: Any, host: Host, seaweed: S3Server
) -> None:
    away = open_job_bucket(dataclasses.replace(seaweed, endpoint="http://127.0.0.1:9"))
    with pytest.raises(DeliveryBusy):
        await send_from_machine(a_model(host, b"weights"), JOB, host, away)
    location = await send_from_machine(a_model(host, b"weights"), JOB, host, open_job_bucket())
    assert location.endswith("/output/model.safetensors")


@asynchronous
async def test_home_sends_its_own_copy_to_the_same_place(open_job_bucket: Any, host: Host, tmp_path: Path) -> None:
    job_bucket = open_job_bucket()
    file = a_model(host, b"weights")
    copy = tmp_path / "copy"
    copy.write_bytes(b"weights")
    assert await send_local_copy(copy, file, JOB, job_bucket) == await send_from_machine(file, JOB, host, job_bucket)
