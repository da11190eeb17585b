"""A bucket of real servers: what is believed of them, and what their refusals become."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import TypedDict

import httpx
import pytest

from stationmaster.delivery.bucket import Bucket, composite_checksum, open_other_bucket
from stationmaster.delivery.bucket import open_bucket as open_from_settings
from stationmaster.delivery.s3_client import new_client
from stationmaster.errors import ConfigInvalid, DeliveryBusy, DeliveryError, DeliveryRefused
from stationmaster.settings import BucketSettings
from stationmaster.trusted_certificates import trusted_certificates
from tests.support.servers.s3_servers import S3Server

OpenBucket = Callable[[S3Server], Bucket]
BODY = b"weights" * 100
SHA256 = hashlib.sha256(BODY).hexdigest()


class Change(TypedDict, total=False):
    """What is wrong about a bucket's settings."""

    endpoint: str
    bucket: str
    access_key: str
    secret_key: str


def opened(server: S3Server) -> Bucket:
    client = new_client(
        endpoint=server.endpoint, region=server.region, access_key=server.access_key, secret_key=server.secret_key
    )
    return Bucket(client, name=server.bucket, prefix="refusals")


def test_a_checksum_is_believed_only_where_a_wrong_one_is_refused(
    rclone: S3Server, seaweed: S3Server, open_bucket: OpenBucket
) -> None:
    assert open_bucket(seaweed).verifies_checksums
    lax = open_bucket(rclone)
    assert not lax.verifies_checksums
    lax.put("model", b"x" * len(BODY), sha256=SHA256)
    said = lax.head("model")
    assert said is not None
    assert said.checksum == SHA256  # what it was told, not what it holds
    assert lax.holds("model", size=len(BODY), sha256=SHA256) is None


def test_nothing_of_the_probe_is_left(rclone: S3Server, open_bucket: OpenBucket) -> None:
    bucket = open_bucket(rclone)
    assert not bucket.verifies_checksums
    assert list(bucket.listed()) == []


def test_a_damaged_object_is_noticed(rclone: S3Server, open_bucket: OpenBucket) -> None:
    bucket = open_bucket(rclone)
    bucket.put("model", BODY, sha256=SHA256)
    assert bucket.holds("model", size=len(BODY), sha256=SHA256) is not None
    assert rclone.folder is not None
    file = rclone.folder / bucket.full_key("model")
    file.write_bytes(BODY[:-1] + b"!")
    assert bucket.holds("model", size=len(BODY), sha256=SHA256) is None


def test_a_large_object_of_parts_is_verified_by_its_parts(seaweed: S3Server, open_bucket: OpenBucket) -> None:
    bucket = open_bucket(seaweed)
    parts = [b"a" * (5 << 20), b"b" * 1000]
    hashes = [hashlib.sha256(part).hexdigest() for part in parts]
    upload = bucket.begin_parts("model")
    for number, part in enumerate(parts, start=1):
        bucket.put_part("model", upload, number, part)
    etags = bucket.list_parts("model", upload)
    assert etags is not None
    bucket.finish_parts("model", upload, etags, hashes)
    found = bucket.head("model")
    assert found is not None
    assert found.checksum == composite_checksum(hashes)
    whole = hashlib.sha256(b"".join(parts)).hexdigest()
    size = sum(map(len, parts))
    assert bucket.holds("model", size=size, sha256=whole, part_sha256s=hashes) is not None
    assert bucket.holds("model", size=size, sha256=whole) is not None  # the parts unknown: the bytes are read
    assert bucket.holds("model", size=size, sha256=SHA256) is None
    assert bucket.list_parts("model", upload) is None


def test_a_signed_address_reads_one_object_and_no_other(seaweed: S3Server, open_bucket: OpenBucket) -> None:
    bucket = open_bucket(seaweed)
    for key in ("mine", "yours"):
        bucket.put(key, BODY, sha256=SHA256)
    url = bucket.sign_get("mine", seconds=60)
    assert httpx.get(url, verify=trusted_certificates()).content == BODY
    assert httpx.get(url.replace("mine", "yours"), verify=trusted_certificates()).status_code == 403


def test_a_signed_upload_works_once_and_with_these_bytes_alone(seaweed: S3Server, open_bucket: OpenBucket) -> None:
    bucket = open_bucket(seaweed)
    signed = bucket.sign_put("model", size=len(BODY), sha256=SHA256, seconds=60)
    headers = {name: value for name, value in signed.headers.items() if name != "Content-Length"}
    for body in (b"x" * len(BODY), BODY[:-1]):
        assert httpx.put(signed.url, content=body, headers=headers, verify=trusted_certificates()).status_code in (
            400,
            403,
        )
    assert bucket.head("model") is None
    assert httpx.put(signed.url, content=BODY, headers=headers, verify=trusted_certificates()).status_code == 200
    assert httpx.put(signed.url, content=BODY, headers=headers, verify=trusted_certificates()).status_code == 412
    assert bucket.holds("model", size=len(BODY), sha256=SHA256) is not None


def test_what_has_changed_is_not_copied(seaweed: S3Server, open_bucket: OpenBucket) -> None:
    bucket = open_bucket(seaweed)
    bucket.put("from", BODY, sha256=SHA256)
    old = bucket.head("from")
    assert old is not None
    bucket.put("from", b"new", sha256=hashlib.sha256(b"new").hexdigest())
    with pytest.raises(DeliveryRefused):
        bucket.copy("from", "to", etag=old.etag)
    assert bucket.head("to") is None


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"secret_key": "a-wrong-planted-key"}, DeliveryRefused),
        ({"access_key": "nobody"}, DeliveryRefused),
        ({"bucket": "nosuchbucket"}, DeliveryRefused),
        ({"endpoint": "http://127.0.0.1:9"}, DeliveryBusy),
    ],
)
def test_a_refusal_is_told_from_a_service_that_is_away(
    seaweed: S3Server, change: Change, kind: type[DeliveryError]
) -> None:
    with closing(opened(replace(seaweed, **change))) as bucket, pytest.raises(kind) as told:
        list(bucket.listed())
    assert "s3://" in str(told.value)
    assert "planted" not in f"{told.value} {told.value.hint}"


def test_without_a_bucket_in_the_settings_there_is_none_and_without_a_key_a_hint() -> None:
    assert open_from_settings(BucketSettings()) is None
    with pytest.raises(ConfigInvalid) as told:
        open_other_bucket(BucketSettings(), "datasets")
    assert "ACCESS_KEY" in str(told.value.hint)


def test_a_bucket_without_an_address_must_say_which_region_of_amazon_it_is_in() -> None:
    keys = {"name": "models", "access_key": "a", "secret_key": "b"}
    with pytest.raises(ValueError, match="region"):
        BucketSettings.model_validate(keys)
    assert BucketSettings.model_validate({**keys, "region": "eu-central-1"}).endpoint is None


def test_without_boto3_a_bucket_is_one_line_and_a_hint() -> None:
    script = (
        "import sys; sys.modules['boto3'] = None\n"  # what an import finds where it is not installed
        "from stationmaster.delivery.s3_client import new_client\n"
        "from stationmaster.errors import ConfigInvalid\n"
        "try: new_client(endpoint=None, region='auto', access_key='a', secret_key='b')\n"
        "except ConfigInvalid as problem: print(problem, problem.hint)\n"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "boto3" in said
    assert "stationmaster[r2]" in said
