"""The S3 client for one bucket: put, read, list, copy, delete and sign objects.

Every method blocks on the network: call it in a thread. All raise DeliveryRefused (a retry does not help) and
DeliveryBusy (a retry may help; whether the call took effect is unknown).
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, BinaryIO

from stationmaster.delivery.s3_client import code_of, is_missing, new_client, translate_errors
from stationmaster.delivery.signed_requests import SignedRequest
from stationmaster.errors import ConfigInvalid
from stationmaster.settings import BucketSettings

OCTETS = "application/octet-stream"
_CHUNK_BYTES = 1 << 20
_LARGEST_COPY_BYTES = int(4.9 * 2**30)
_COPIED_PART_BYTES = 512 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """An object as the service describes it; `checksum` is hex, or `hex-N` over the checksums of N parts."""

    key: str
    size: int
    etag: str
    checksum: str | None = None
    etag_is_md5: bool = True  # False for an upload in parts, and for encryption with a customer-managed key


class Bucket:
    """The objects of one bucket below `prefix`; keys are relative to it."""

    def __init__(self, client: Any, *, name: str, prefix: str = "") -> None:
        self._client = client
        self.name = name
        self.prefix = prefix.strip("/")

    def below(self, folder: str) -> Bucket:
        """The same bucket with a longer prefix."""
        return Bucket(self._client, name=self.name, prefix=self.full_key(folder))

    def location(self, key: str = "") -> str:
        """The s3:// address of an object, as shown to users and kept in the store."""
        return f"s3://{self.name}/{self.full_key(key)}"

    def full_key(self, key: str) -> str:
        return "/".join(part for part in (self.prefix, key) if part)

    def put(self, key: str, content: BinaryIO | bytes, *, sha256: str, content_type: str = OCTETS) -> None:
        """Write one object in one request, with its checksum. Not every service verifies it: `holds` does."""
        with translate_errors(f"writing {self.location(key)}"):
            self._client.put_object(
                **self._address(key), Body=content, ChecksumSHA256=in_base64(sha256), ContentType=content_type
            )

    def head(self, key: str) -> StoredObject | None:
        """The object's description; None only if the service answers that there is no such object."""
        from botocore.exceptions import ClientError  # type: ignore[import-untyped]  # it ships no types

        with translate_errors(f"reading {self.location(key)}"):
            try:
                found = self._client.head_object(**self._address(key), ChecksumMode="ENABLED")
            except ClientError as problem:
                if is_missing(problem):
                    return None
                raise
        checksum = found.get("ChecksumSHA256")
        return StoredObject(
            key=key,
            size=int(found["ContentLength"]),
            etag=str(found["ETag"]).strip('"'),
            checksum=None if checksum is None else _in_hex(checksum),
            etag_is_md5="-" not in found["ETag"]
            and not str(found.get("ServerSideEncryption", "")).startswith("aws:kms")
            and "SSECustomerAlgorithm" not in found,
        )

    def read(self, key: str, *, offset: int = 0, etag: str | None = None) -> Iterator[bytes]:
        """Yield the bytes from `offset` on. Raises DeliveryRefused if the object no longer has this `etag`."""
        wanted: dict[str, Any] = {} if etag is None else {"IfMatch": f'"{etag}"'}
        if offset:
            wanted["Range"] = f"bytes={offset}-"
        with translate_errors(f"reading {self.location(key)}"):
            answer = self._client.get_object(**self._address(key), **wanted)
            # A service without range requests sends the whole object.
            unwanted = offset if "ContentRange" not in answer else 0
            with closing(answer["Body"]) as body:
                for chunk in body.iter_chunks(_CHUNK_BYTES):
                    if unwanted < len(chunk):
                        yield chunk[unwanted:]
                    unwanted = max(0, unwanted - len(chunk))

    def read_range(self, key: str, *, start: int, size: int) -> bytes:
        """Read `size` bytes in one request; fewer at the object's end, never more, even if the service sends more."""
        with translate_errors(f"reading {self.location(key)}"):
            span = f"bytes={start}-{start + size - 1}"
            answer = self._client.get_object(**self._address(key), Range=span)
            skipped = start if "ContentRange" not in answer else 0  # without range requests: the whole object
            with closing(answer["Body"]) as body:
                if skipped:
                    body.read(skipped)
                return bytes(body.read(size))

    def listed(self, prefix: str = "") -> Iterator[StoredObject]:
        """Every object whose key begins with `prefix`, ordered by key."""
        whole = self.full_key(prefix) if prefix else (f"{self.prefix}/" if self.prefix else "")
        with translate_errors(f"listing {self.location(prefix)}"):
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=whole):
                for one in page.get("Contents", ()):
                    yield StoredObject(key=self._relative(one["Key"]), size=one["Size"], etag=one["ETag"].strip('"'))

    def copy(self, source: str, target: str, *, etag: str) -> None:
        """Copy `source` to `target` inside the service. Raises DeliveryRefused if `source` has another `etag`."""
        from boto3.s3.transfer import TransferConfig  # type: ignore[import-untyped]  # it ships no types

        found = {"Bucket": self.name, "Key": self.full_key(source)}
        # In parts only above the limit of a single copy request.
        config = TransferConfig(multipart_threshold=_LARGEST_COPY_BYTES, multipart_chunksize=_COPIED_PART_BYTES)
        condition = {"CopySourceIfMatch": f'"{etag}"'}
        with translate_errors(f"copying {self.location(source)}"):
            self._client.copy(found, self.name, self.full_key(target), ExtraArgs=condition, Config=config)

    def delete(self, key: str) -> None:
        """Delete the object; does nothing if there is none."""
        with translate_errors(f"deleting {self.location(key)}"):
            self._client.delete_object(**self._address(key))

    def holds(self, key: str, *, size: int, sha256: str, part_sha256s: Sequence[str] = ()) -> StoredObject | None:
        """The object if its content has this hash, else None.

        The service's checksum counts only if the service is known to reject a wrong one; else all bytes are read.
        """
        found = self.head(key)
        if found is None or found.size != size:
            return None
        known = {sha256, composite_checksum(part_sha256s)} if part_sha256s else {sha256}
        comparable = found.checksum is not None and ("-" not in found.checksum or len(known) > 1)
        if comparable and self.verifies_checksums:
            return found if found.checksum in known else None
        digest = hashlib.sha256()
        for chunk in self.read(key, etag=found.etag):
            digest.update(chunk)
        return found if digest.hexdigest() == sha256 else None

    @cached_property
    def verifies_checksums(self) -> bool:
        """Whether the service rejects content that does not match its checksum: some only store the checksum."""
        from botocore.exceptions import ClientError

        key = f"probes/{secrets.token_hex(8)}"
        with translate_errors(f"writing {self.location(key)}"):
            try:
                self._client.put_object(**self._address(key), Body=b"a", ChecksumSHA256=in_base64(_sha256(b"b")))
            except ClientError as problem:
                if "Digest" in code_of(problem) or "Checksum" in code_of(problem):
                    return True
                raise
        self.delete(key)
        return False

    def sign_get(self, key: str, *, seconds: float) -> str:
        """A URL that reads this object without a key until it expires."""
        with translate_errors(f"signing {self.location(key)}"):
            signed = self._client.generate_presigned_url(
                "get_object", Params=self._address(key), ExpiresIn=int(seconds)
            )
            return str(signed)

    def sign_put(self, key: str, *, size: int, sha256: str, seconds: float) -> SignedRequest:
        """Sign one upload of exactly these bytes to a key that must not exist yet."""
        params = {
            **self._address(key),
            "ContentLength": size,
            "ContentType": OCTETS,
            "ChecksumSHA256": in_base64(sha256),
            "IfNoneMatch": "*",
        }
        headers = {
            "Content-Length": str(size),
            "Content-Type": OCTETS,
            "x-amz-checksum-sha256": in_base64(sha256),
            "If-None-Match": "*",
        }
        return self._signed("put_object", params, headers, seconds)

    def begin_parts(self, key: str) -> str:
        """Start an upload in parts and return its id."""
        with translate_errors(f"writing {self.location(key)}"):
            begun = self._client.create_multipart_upload(
                **self._address(key), ChecksumAlgorithm="SHA256", ContentType=OCTETS
            )
            return str(begun["UploadId"])

    def put_part(self, key: str, upload: str, number: int, content: bytes) -> None:
        """Write one part, counted from 1."""
        with translate_errors(f"writing {self.location(key)}"):
            checksum = in_base64(_sha256(content))
            self._client.upload_part(
                **self._address(key), UploadId=upload, PartNumber=number, Body=content, ChecksumSHA256=checksum
            )

    def sign_part(self, key: str, upload: str, number: int, *, size: int, sha256: str, seconds: float) -> SignedRequest:
        """Sign one upload of exactly these bytes as one part."""
        params = {
            **self._address(key),
            "UploadId": upload,
            "PartNumber": number,
            "ContentLength": size,
            "ChecksumSHA256": in_base64(sha256),
        }
        headers = {"Content-Length": str(size), "x-amz-checksum-sha256": in_base64(sha256)}
        return self._signed("upload_part", params, headers, seconds)

    def list_parts(self, key: str, upload: str) -> dict[int, str] | None:
        """The ETags of the parts that have arrived, by number; None if the upload no longer exists."""
        from botocore.exceptions import ClientError

        with translate_errors(f"reading {self.location(key)}"):
            try:
                pages = self._client.get_paginator("list_parts").paginate(**self._address(key), UploadId=upload)
                return {part["PartNumber"]: str(part["ETag"]) for page in pages for part in page.get("Parts", ())}
            except ClientError as problem:
                if is_missing(problem):
                    return None
                raise

    def finish_parts(
        self,
        key: str,
        upload: str,
        etags: Mapping[int, str],
        part_sha256s: Sequence[str],
        *,
        only_if_free: bool = False,
    ) -> None:
        """Join all parts into one object; with `only_if_free` an existing object is not replaced."""
        parts = [
            {"PartNumber": number, "ETag": etags[number], "ChecksumSHA256": in_base64(sha256)}
            for number, sha256 in enumerate(part_sha256s, start=1)
        ]
        condition = {"IfNoneMatch": "*"} if only_if_free else {}
        with translate_errors(f"writing {self.location(key)}"):
            self._client.complete_multipart_upload(
                **self._address(key), UploadId=upload, MultipartUpload={"Parts": parts}, **condition
            )

    def abandon_parts(self, key: str, upload: str) -> None:
        """Delete the upload and its parts; does nothing if there is none."""
        from botocore.exceptions import ClientError

        with translate_errors(f"deleting {self.location(key)}"):
            try:
                self._client.abort_multipart_upload(**self._address(key), UploadId=upload)
            except ClientError as problem:
                if not is_missing(problem):
                    raise

    def close(self) -> None:
        self._client.close()

    def _address(self, key: str) -> dict[str, str]:
        return {"Bucket": self.name, "Key": self.full_key(key)}

    def _relative(self, whole: str) -> str:
        return whole.removeprefix(f"{self.prefix}/") if self.prefix else whole

    def _signed(
        self, call: str, params: Mapping[str, Any], headers: Mapping[str, str], seconds: float
    ) -> SignedRequest:
        with translate_errors(f"signing an upload to s3://{self.name}"):
            url = self._client.generate_presigned_url(call, Params=params, ExpiresIn=int(seconds))
        return SignedRequest(method="PUT", url=str(url), headers=headers)


def open_bucket(settings: BucketSettings) -> Bucket | None:
    """Open the bucket in the settings; None if none is set. Raises ConfigInvalid."""
    if settings.name is None:
        return None
    return open_other_bucket(settings, settings.name, prefix=settings.prefix)


def open_other_bucket(settings: BucketSettings, name: str, *, prefix: str = "") -> Bucket:
    """Open any bucket with the key in the settings. Raises ConfigInvalid if no key is set."""
    if settings.access_key is None or settings.secret_key is None:
        raise ConfigInvalid(
            f"no key is set for the bucket s3://{name}",
            hint="set STATIONMASTER_BUCKET__ACCESS_KEY, STATIONMASTER_BUCKET__SECRET_KEY and, unless it is on Amazon "
            "S3, STATIONMASTER_BUCKET__ENDPOINT",
        )
    client = new_client(
        endpoint=settings.endpoint,
        region=settings.region,
        access_key=settings.access_key.get_secret_value(),
        secret_key=settings.secret_key.get_secret_value(),
    )
    return Bucket(client, name=name, prefix=prefix)


def composite_checksum(part_sha256s: Sequence[str]) -> str:
    """The checksum of an object made of parts: the hash of the parts' hashes, then the number of parts.

    >>> composite_checksum(["00" * 32])[-6:]
    '2925-1'
    """
    joined = b"".join(bytes.fromhex(one) for one in part_sha256s)
    return f"{_sha256(joined)}-{len(part_sha256s)}"


def in_base64(sha256: str) -> str:
    return base64.b64encode(bytes.fromhex(sha256)).decode()


def _in_hex(checksum: str) -> str:
    digest, dash, parts = checksum.partition("-")
    return base64.b64decode(digest).hex() + dash + parts


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
