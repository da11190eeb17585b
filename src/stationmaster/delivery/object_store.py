"""One bucket: objects put, read, listed, copied and deleted, each in one conversation.

Everything here waits for the network: call it in a thread. All raise DeliveryRefused (it will not work) and
DeliveryBusy (it may later, and nobody knows whether it did).
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

from stationmaster.delivery.s3_client import code_of, is_missing, translated
from stationmaster.delivery.signed_requests import SignedRequest

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
    etag_is_md5: bool = True  # not of one that came in parts, or is encrypted with a key of its owner's


class Bucket:
    """The objects of one bucket below `prefix`; keys are relative to it."""

    def __init__(self, client: Any, *, name: str, prefix: str = "") -> None:
        self._client = client
        self.name = name
        self.prefix = prefix.strip("/")

    def below(self, folder: str) -> Bucket:
        """The same bucket, seen from a folder of it."""
        return Bucket(self._client, name=self.name, prefix=self.full_key(folder))

    def location(self, key: str = "") -> str:
        """The address that people and the store know an object by."""
        return f"s3://{self.name}/{self.full_key(key)}"

    def full_key(self, key: str) -> str:
        return "/".join(part for part in (self.prefix, key) if part)

    def put(self, key: str, content: BinaryIO | bytes, *, sha256: str, content_type: str = OCTETS) -> None:
        """Write one object whole, with its checksum; whether the service looked at that, `holds` tells."""
        with translated(f"writing {self.location(key)}"):
            self._client.put_object(
                **self._place(key), Body=content, ChecksumSHA256=in_base64(sha256), ContentType=content_type
            )

    def head(self, key: str) -> StoredObject | None:
        """What is there; None only when the service itself says that nothing is."""
        from botocore.exceptions import ClientError  # type: ignore[import-untyped]  # it ships no types

        with translated(f"reading {self.location(key)}"):
            try:
                found = self._client.head_object(**self._place(key), ChecksumMode="ENABLED")
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
        """The bytes from `offset` on; refused when the object is no longer the one with that `etag`."""
        wanted: dict[str, Any] = {} if etag is None else {"IfMatch": f'"{etag}"'}
        if offset:
            wanted["Range"] = f"bytes={offset}-"
        with translated(f"reading {self.location(key)}"):
            answer = self._client.get_object(**self._place(key), **wanted)
            # A service that does not know ranges sends everything.
            unwanted = offset if "ContentRange" not in answer else 0
            with closing(answer["Body"]) as body:
                for chunk in body.iter_chunks(_CHUNK_BYTES):
                    if unwanted < len(chunk):
                        yield chunk[unwanted:]
                    unwanted = max(0, unwanted - len(chunk))

    def read_range(self, key: str, *, start: int, size: int) -> bytes:
        """So many bytes of an object, by one request; fewer where it ends, never more, whatever the service sends."""
        with translated(f"reading {self.location(key)}"):
            span = f"bytes={start}-{start + size - 1}"
            answer = self._client.get_object(**self._place(key), Range=span)
            skipped = start if "ContentRange" not in answer else 0  # a service that does not know ranges sends all
            with closing(answer["Body"]) as body:
                if skipped:
                    body.read(skipped)
                return bytes(body.read(size))

    def listed(self, prefix: str = "") -> Iterator[StoredObject]:
        """Every object whose key begins with `prefix`, in order."""
        whole = self.full_key(prefix) if prefix else (f"{self.prefix}/" if self.prefix else "")
        with translated(f"listing {self.location(prefix)}"):
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=whole):
                for one in page.get("Contents", ()):
                    yield StoredObject(key=self._relative(one["Key"]), size=one["Size"], etag=one["ETag"].strip('"'))

    def copy(self, source: str, target: str, *, etag: str) -> None:
        """`target` holds what `source` held when it had `etag`; the bytes do not leave the service."""
        from boto3.s3.transfer import TransferConfig  # type: ignore[import-untyped]  # it ships no types

        found = {"Bucket": self.name, "Key": self.full_key(source)}
        # By parts only where one request may not copy so much.
        config = TransferConfig(multipart_threshold=_LARGEST_COPY_BYTES, multipart_chunksize=_COPIED_PART_BYTES)
        condition = {"CopySourceIfMatch": f'"{etag}"'}
        with translated(f"copying {self.location(source)}"):
            self._client.copy(found, self.name, self.full_key(target), ExtraArgs=condition, Config=config)

    def delete(self, key: str) -> None:
        """The object is not there, whether or not it was."""
        with translated(f"deleting {self.location(key)}"):
            self._client.delete_object(**self._place(key))

    def holds(self, key: str, *, size: int, sha256: str, part_sha256s: Sequence[str] = ()) -> StoredObject | None:
        """The object if its bytes are those with this hash, else None.

        The service's own checksum is believed only where it was seen to refuse a wrong one; else the bytes are read.
        """
        found = self.head(key)
        if found is None or found.size != size:
            return None
        known = {sha256, composite(part_sha256s)} if part_sha256s else {sha256}
        comparable = found.checksum is not None and ("-" not in found.checksum or len(known) > 1)
        if comparable and self.checks_sums:
            return found if found.checksum in known else None
        digest = hashlib.sha256()
        for chunk in self.read(key, etag=found.etag):
            digest.update(chunk)
        return found if digest.hexdigest() == sha256 else None

    @cached_property
    def checks_sums(self) -> bool:
        """Whether the service compares content with the checksum that comes with it: some only write it down."""
        from botocore.exceptions import ClientError

        key = f"probes/{secrets.token_hex(8)}"
        with translated(f"writing {self.location(key)}"):
            try:
                self._client.put_object(**self._place(key), Body=b"a", ChecksumSHA256=in_base64(_sha256(b"b")))
            except ClientError as problem:
                if "Digest" in code_of(problem) or "Checksum" in code_of(problem):
                    return True
                raise
        self.delete(key)
        return False

    def sign_get(self, key: str, *, seconds: float) -> str:
        """An address from which anybody may read this object until it expires."""
        with translated(f"signing {self.location(key)}"):
            signed = self._client.generate_presigned_url("get_object", Params=self._place(key), ExpiresIn=int(seconds))
            return str(signed)

    def sign_put(self, key: str, *, size: int, sha256: str, seconds: float) -> SignedRequest:
        """One upload of exactly these bytes to a key that must be free."""
        params = {
            **self._place(key),
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
        """A new upload in parts; its id."""
        with translated(f"writing {self.location(key)}"):
            begun = self._client.create_multipart_upload(
                **self._place(key), ChecksumAlgorithm="SHA256", ContentType=OCTETS
            )
            return str(begun["UploadId"])

    def put_part(self, key: str, upload: str, number: int, content: bytes) -> None:
        """Write one part, counted from 1."""
        with translated(f"writing {self.location(key)}"):
            sum_of_part = in_base64(_sha256(content))
            self._client.upload_part(
                **self._place(key), UploadId=upload, PartNumber=number, Body=content, ChecksumSHA256=sum_of_part
            )

    def sign_part(self, key: str, upload: str, number: int, *, size: int, sha256: str, seconds: float) -> SignedRequest:
        """One upload of exactly these bytes as one part."""
        params = {
            **self._place(key),
            "UploadId": upload,
            "PartNumber": number,
            "ContentLength": size,
            "ChecksumSHA256": in_base64(sha256),
        }
        headers = {"Content-Length": str(size), "x-amz-checksum-sha256": in_base64(sha256)}
        return self._signed("upload_part", params, headers, seconds)

    def arrived_parts(self, key: str, upload: str) -> dict[int, str] | None:
        """The parts that are there, by number, with their ETags; None when there is no such upload any more."""
        from botocore.exceptions import ClientError

        with translated(f"reading {self.location(key)}"):
            try:
                pages = self._client.get_paginator("list_parts").paginate(**self._place(key), UploadId=upload)
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
        """All parts become one object; with `only_if_free` nothing that has the key is replaced."""
        parts = [
            {"PartNumber": number, "ETag": etags[number], "ChecksumSHA256": in_base64(sha256)}
            for number, sha256 in enumerate(part_sha256s, start=1)
        ]
        condition = {"IfNoneMatch": "*"} if only_if_free else {}
        with translated(f"writing {self.location(key)}"):
            self._client.complete_multipart_upload(
                **self._place(key), UploadId=upload, MultipartUpload={"Parts": parts}, **condition
            )

    def abandon_parts(self, key: str, upload: str) -> None:
        """Nothing of the upload is left, whether or not there was one."""
        from botocore.exceptions import ClientError

        with translated(f"deleting {self.location(key)}"):
            try:
                self._client.abort_multipart_upload(**self._place(key), UploadId=upload)
            except ClientError as problem:
                if not is_missing(problem):
                    raise

    def close(self) -> None:
        self._client.close()

    def _place(self, key: str) -> dict[str, str]:
        return {"Bucket": self.name, "Key": self.full_key(key)}

    def _relative(self, whole: str) -> str:
        return whole.removeprefix(f"{self.prefix}/") if self.prefix else whole

    def _signed(
        self, call: str, params: Mapping[str, Any], headers: Mapping[str, str], seconds: float
    ) -> SignedRequest:
        with translated(f"signing an upload to s3://{self.name}"):
            url = self._client.generate_presigned_url(call, Params=params, ExpiresIn=int(seconds))
        return SignedRequest(method="PUT", url=str(url), headers=headers)


def composite(part_sha256s: Sequence[str]) -> str:
    """The checksum that services give an object made of parts: over the parts' own, with their number.

    >>> composite(["00" * 32])[-6:]
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
