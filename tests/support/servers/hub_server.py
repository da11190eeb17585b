"""A Hugging Face Hub on this computer: repositories, LFS with checked content, gates, limits and cut uploads.

`huggingface_hub` works against it with `HF_ENDPOINT`. Xet uploads are accepted request by request, not understood.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.servers.hub_repos import HubFile, HubRepo, hub_file, is_lfs, plain_file

HUB_TOKEN = "hf_planted_owner_token"
HUB_USER = "anna"

_REPO = r"(?P<kind>models|datasets)/(?P<id>[^/]+/[^/]+)"
_RESOLVE = re.compile(r"/(?:(?P<kind>datasets)/)?(?P<id>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<path>.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class HubRequest:
    """One request as it arrived; the body is kept unless it is an upload's."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes
    user: str | None

    def document(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubAnswer:
    status: int = 200
    document: Any = None
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def body(self) -> bytes:
        if self.content is not None:
            return self.content
        return b"" if self.document is None else json.dumps(self.document).encode()


@dataclass(slots=True, kw_only=True)
class HubTrouble:
    """What goes wrong with the next requests whose `METHOD /path` matches: an answer, or the line cut in the body."""

    pattern: str
    answer: HubAnswer | None
    cut_after_bytes: int = 0
    left: int | None = 1

    def strikes(self, method: str, path: str) -> bool:
        if self.left == 0 or not re.search(self.pattern, f"{method} {path}"):
            return False
        if self.left is not None:
            self.left -= 1
        return True


class HubServer:
    """Use as a context manager. `users` maps tokens to names; `requests` is everything that was asked."""

    def __init__(self) -> None:
        self.users = {HUB_TOKEN: HUB_USER}
        self.read_only_tokens: set[str] = set()
        self.fine_grained: dict[str, Any] = {}  # tokens with what the Hub tells of their permissions
        self.repos: dict[tuple[str, str], HubRepo] = {}
        self.requests: list[HubRequest] = []
        self.multipart_above_bytes: int | None = None
        self.part_bytes = 2**20
        self.addresses_last: int | None = None  # so many uploads, then those of one answer have expired
        self.keeps_uploads = True  # in parts: asked again, the Hub goes on with the one that has begun
        self.expires_in: float | None = None  # lifetime that it reports for its URLs
        self.batch_extra: dict[str, Any] = {}  # laid over every object that it answers with
        self.transfer: str | None = None  # in place of the one that fits
        self._troubles: list[HubTrouble] = []
        self._objects: dict[tuple[str, str], HubFile] = {}
        self._parts: dict[str, dict[int, bytes]] = {}  # by the upload's id
        self._uploads: dict[str, str] = {}  # the id of the upload that has begun, by the object's
        self._batches: list[int] = []  # how often the addresses of each answer were used
        self._xet_repos: set[str] = set()
        self._lock = threading.RLock()

    def __enter__(self) -> HubServer:
        outer = self

        class Handler(_Handler):
            hub = outer

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def environ(self) -> dict[str, str]:
        """Settings that make `huggingface_hub` use this server: LFS uploads, no other service."""
        return {"HF_ENDPOINT": self.url, "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}

    def add_repo(
        self,
        repo_id: str,
        files: Mapping[str, bytes] | None = None,
        *,
        kind: str = "model",
        private: bool = False,
        granted: frozenset[str] | None = None,
    ) -> HubRepo:
        """A repository that is there already. `granted` makes it gated: only these users get its files."""
        repo = HubRepo(kind=kind, id=repo_id, private=private, granted=granted)
        if files:
            repo.commit({path: hub_file(path, content) for path, content in files.items()}, message="files")
        with self._lock:
            self.repos[kind, repo_id] = repo
        return repo

    def content(self, repo_id: str, path: str, *, kind: str = "model") -> bytes | None:
        """What `main` has under that path; None when it has nothing readable there."""
        with self._lock:
            repo = self.repos.get((kind, repo_id))
            file = (repo.files() or {}).get(path) if repo else None
        return file.content if file else None

    def refuse(
        self,
        pattern: str,
        status: int,
        *,
        times: int | None = 1,
        headers: Mapping[str, str] | None = None,
        document: Any = None,
    ) -> None:
        """The next requests matching `METHOD /path` get this status; `times=None`: until `forgive`."""
        answer = HubAnswer(status=status, headers=headers or {}, document=document or {"error": f"refused: {status}"})
        with self._lock:
            self._troubles.append(HubTrouble(pattern=pattern, answer=answer, left=times))

    def cut(self, pattern: str, *, after_bytes: int = 0, times: int | None = 1) -> None:
        """The connection of the next matching requests is reset after that many bytes of their body."""
        with self._lock:
            self._troubles.append(HubTrouble(pattern=pattern, answer=None, cut_after_bytes=after_bytes, left=times))

    def forgive(self) -> None:
        with self._lock:
            self._troubles.clear()

    def asked(self, pattern: str) -> list[HubRequest]:
        """The requests so far whose `METHOD /path` matches."""
        with self._lock:
            return [one for one in self.requests if re.search(pattern, f"{one.method} {one.path}")]

    # The rest is called by the handler's threads.

    def trouble(self, method: str, path: str) -> HubTrouble | None:
        with self._lock:
            return next((trouble for trouble in self._troubles if trouble.strikes(method, path)), None)

    def user_of(self, headers: Mapping[str, str]) -> str | None:
        return self.users.get(headers.get("authorization", "").removeprefix("Bearer "))

    def answer(self, request: HubRequest) -> HubAnswer:
        with self._lock:
            self.requests.append(request)
            for method, pattern, handle in self._routes():
                if request.method in method and (found := re.fullmatch(pattern, request.path)):
                    return handle(request, found.groupdict())
        return HubAnswer(status=404, document={"error": f"no such page: {request.path}"})

    def _routes(self) -> list[tuple[tuple[str, ...], str, Callable[[HubRequest, dict[str, str]], HubAnswer]]]:
        get, post, put = ("GET", "HEAD"), ("POST",), ("PUT",)
        return [
            (get, "/api/whoami-v2", self._whoami),
            (post, "/api/repos/create", self._create),
            (post, "/api/validate-yaml", lambda _request, _found: _ok({"errors": [], "warnings": []})),
            (post, f"/api/{_REPO}/preupload/main", self._preupload),
            (post, f"/api/{_REPO}/commit/main", self._commit),
            (get, f"/api/{_REPO}/xet-write-token/main", self._xet_token),
            (get, rf"/api/{_REPO}(?:/revision/(?P<revision>[^/]+))?", self._info),
            (get, rf"/api/{_REPO}/tree/(?P<revision>[^/]+)(?:/(?P<path>.+))?", self._tree),
            (post, rf"/api/{_REPO}/paths-info/(?P<revision>[^/]+)", self._paths_info),
            (post, r"/(?:(?P<kind>datasets)/)?(?P<id>[^/]+/[^/]+)\.git/info/lfs/objects/batch", self._batch),
            (put, r"/lfs/(?P<kind>\w+)/(?P<id>[^/]+/[^/]+)/(?P<oid>\w{64})(?:/(?P<part>\d+))?", self._lfs_put),
            (post, r"/lfs/(?P<kind>\w+)/(?P<id>[^/]+/[^/]+)/(?P<oid>\w{64})/complete", self._lfs_complete),
            (post, r"/lfs/(?P<kind>\w+)/(?P<id>[^/]+/[^/]+)/(?P<oid>\w{64})/verify", self._lfs_verify),
            (get, _RESOLVE.pattern, self._resolve),
            (post, r"/xet/v1/xorbs/default/\w+", lambda _request, _found: _ok({"was_inserted": True})),
            (post, r"/xet/v1/shards", lambda _request, _found: _ok({"result": 1})),
        ]

    def _whoami(self, request: HubRequest, _found: dict[str, str]) -> HubAnswer:
        if request.user is None:
            return _invalid_token()
        token = request.headers["authorization"].removeprefix("Bearer ")
        role = "read" if token in self.read_only_tokens else "write"
        told: dict[str, Any] = {"displayName": "test", "role": role}
        if token in self.fine_grained:
            told |= {"role": "fineGrained", "fineGrained": self.fine_grained[token]}
        access = {"type": "access_token", "accessToken": told}
        return _ok({"type": "user", "name": request.user, "orgs": [], "auth": access})

    def _create(self, request: HubRequest, _found: dict[str, str]) -> HubAnswer:
        if refusal := self._may_not_write(request, None):
            return refusal
        wanted = request.document()
        kind = wanted.get("type") or "model"
        repo_id = f"{wanted.get('organization') or request.user}/{wanted['name']}"
        if not repo_id.startswith(f"{request.user}/"):
            return HubAnswer(status=403, document={"error": f"You don't have the rights to create under {repo_id}"})
        document = {"url": f"{self.url}/{repo_id}", "name": repo_id, "id": repo_id}
        if (kind, repo_id) in self.repos:
            return HubAnswer(status=409, document={"error": "You already created this model repo", **document})
        private = wanted.get("visibility") == "private" or bool(wanted.get("private"))
        self.repos[kind, repo_id] = HubRepo(kind=kind, id=repo_id, private=private)
        return _ok(document)

    def _preupload(self, request: HubRequest, found: dict[str, str]) -> HubAnswer:
        repo = self._repo(found)
        if refusal := self._may_not_write(request, repo):
            return refusal
        answers = [
            {
                "path": file["path"],
                "uploadMode": "lfs" if is_lfs(file["path"], file["size"]) else "regular",
                "shouldIgnore": False,
                "oid": None,
            }
            for file in request.document()["files"]
        ]
        return _ok({"files": answers})

    def _batch(self, request: HubRequest, found: dict[str, str]) -> HubAnswer:
        repo = self._repo(found)
        if refusal := self._may_not_write(request, repo):
            return refusal
        assert repo is not None
        wanted = request.document()
        objects, transfer = [], "basic"
        self._batches.append(0)
        for one in wanted["objects"]:
            base = f"{self.url}/lfs/{repo.kind}/{repo.id}/{one['oid']}"
            if (repo.id, one["oid"]) in self._objects:
                objects.append({"oid": one["oid"], "size": one["size"]})
                continue
            signed = f"batch={len(self._batches) - 1}&X-Amz-Signature=planted"
            upload: dict[str, Any] = {"href": f"{base}?{signed}", "header": {}}
            if self.multipart_above_bytes is not None and one["size"] > self.multipart_above_bytes:
                transfer = "multipart"
                upload = self._in_parts(base, one["oid"], one["size"], signed)
            if self.expires_in is not None:
                upload["expires_in"] = self.expires_in
            verify = {"href": f"{base}/verify", "header": {"Authorization": request.headers["authorization"]}}
            actions = {"upload": upload, "verify": verify}
            objects.append({"oid": one["oid"], "size": one["size"], "actions": actions, **self.batch_extra})
        if transfer not in wanted.get("transfers", ["basic"]):
            return HubAnswer(status=400, document={"error": f"the {transfer} transfer is needed"})
        return _ok({"transfer": self.transfer or transfer, "objects": objects})

    def _in_parts(self, base: str, oid: str, size: int, signed: str) -> dict[str, Any]:
        if oid not in self._uploads or not self.keeps_uploads:
            self._uploads[oid] = f"upload-{len(self._parts)}"
            self._parts[self._uploads[oid]] = {}
        query = f"uploadId={self._uploads[oid]}&{signed}"
        count = -(-size // self.part_bytes)
        parts = {f"{number:05}": f"{base}/{number}?{query}" for number in range(1, count + 1)}
        return {"href": f"{base}/complete?{query}", "header": {"chunk_size": str(self.part_bytes), **parts}}

    def _lfs_put(self, request: HubRequest, found: dict[str, str]) -> HubAnswer:
        if "authorization" in request.headers:
            return HubAnswer(status=400, document={"error": "a signed link takes no token"})
        batch = int(request.query["batch"][0])
        if self.addresses_last is not None and self._batches[batch] >= self.addresses_last:
            return HubAnswer(status=403, content=b"<Error><Message>Request has expired</Message></Error>")
        self._batches[batch] += 1
        if found["part"]:
            parts = self._parts.get(request.query["uploadId"][0])
            if parts is None or request.query["uploadId"][0] != self._uploads[found["oid"]]:
                return HubAnswer(status=404, content=b"<Error><Code>NoSuchUpload</Code></Error>")
            parts[int(found["part"])] = request.body
            return HubAnswer(headers={"ETag": f'"{hashlib.md5(request.body).hexdigest()}"'})
        return self._keep_object(found, request.body)

    def _lfs_complete(self, request: HubRequest, found: dict[str, str]) -> HubAnswer:
        parts = self._parts.get(request.query["uploadId"][0], {})
        said = {part["partNumber"]: part["etag"].strip('"') for part in request.document()["parts"]}
        if said != {number: hashlib.md5(data).hexdigest() for number, data in parts.items()}:
            return HubAnswer(status=400, document={"error": "parts are missing or differ"})
        return self._keep_object(found, b"".join(parts[number] for number in sorted(parts)))

    def _keep_object(self, found: dict[str, str], content: bytes) -> HubAnswer:
        if hashlib.sha256(content).hexdigest() != found["oid"]:
            return HubAnswer(status=400, document={"error": "the content has another SHA-256"})
        self._objects[found["id"], found["oid"]] = HubFile(
            content=content, size=len(content), oid=found["oid"], is_lfs=True
        )
        return _ok({})

    def _lfs_verify(self, request: HubRequest, found: dict[str, str]) -> HubAnswer:
        kept = self._objects.get((found["id"], found["oid"]))
        if kept is None or kept.size != request.document()["size"]:
            return HubAnswer(status=404, document={"error": "no such object of that size"})
        return _ok({})

    def _commit(self, request: HubRequest, found: dict[str, str]) -> HubAnswer:
        repo = self._repo(found)
        if refusal := self._may_not_write(request, repo):
            return refusal
        assert repo is not None
        message = ""
        changes: dict[str, HubFile | None] = {}
        for line in request.body.splitlines():
            one = json.loads(line)
            value = one["value"]
            match one["key"]:
                case "header":
                    message = value["summary"]
                case "file":
                    changes[value["path"]] = plain_file(base64.b64decode(value["content"]))
                case "lfsFile":
                    kept = self._committed_object(repo.id, value)
                    if kept is None:
                        return HubAnswer(status=400, document={"error": f"{value['path']}: its object is missing"})
                    changes[value["path"]] = kept
                case "deletedFile":
                    changes[value["path"]] = None
        sha = repo.commit(changes, message=message)
        url = f"{self.url}/{repo.id}/commit/{sha}"
        return _ok({"success": True, "commitUrl": url, "commitOid": sha, "hookOutput": "", "pullRequestUrl": None})

    def _committed_object(self, repo_id: str, value: dict[str, Any]) -> HubFile | None:
        if kept := self._objects.get((repo_id, value["oid"])):
            return kept
        if repo_id in self._xet_repos:  # its chunks were taken in, unread
            return HubFile(content=None, size=value["size"], oid=value["oid"], is_lfs=True)
        return None

    def _xet_token(self, request: HubRequest, found: dict[str, str]) -> HubAnswer:
        repo = self._repo(found)
        if refusal := self._may_not_write(request, repo):
            return refusal
        assert repo is not None
        self._xet_repos.add(repo.id)
        cas, token, until = f"{self.url}/xet", "xet-access", 4102444800
        headers = {"X-Xet-Cas-Url": cas, "X-Xet-Access-Token": token, "X-Xet-Token-Expiration": str(until)}
        return HubAnswer(document={"casUrl": cas, "accessToken": token, "exp": until}, headers=headers)

    def _info(self, request: HubRequest, found: dict[str, str]) -> HubAnswer:
        repo = self._repo(found)
        if refusal := self._may_not_see(request, repo):
            return refusal
        assert repo is not None
        revision = unquote(found["revision"] or "main")
        files = repo.files(revision)
        if files is None:
            return _no_revision(revision)
        return _ok(
            {
                "_id": "0",
                "id": repo.id,
                "sha": repo.sha_of(revision),
                "private": repo.private,
                "gated": False if repo.granted is None else "manual",
                "tags": [],
                "cardData": repo.card,
                "downloads": 0,
                "likes": 0,
                "siblings": [{"rfilename": path} for path in sorted(files)],
            }
        )

    def _tree(self, request: HubRequest, found: dict[str, str]) -> HubAnswer:
        repo = self._repo(found)
        if refusal := self._may_not_read(request, repo):
            return refusal
        assert repo is not None
        files = repo.files(unquote(found["revision"]))
        if files is None:
            return _no_revision(found["revision"])
        folder = f"{unquote(found['path'])}/" if found["path"] else ""
        recursive = request.query.get("recursive", ["false"])[0].lower() in ("true", "1")
        inside = {path: file for path, file in files.items() if path.startswith(folder)}
        folders = {path[: path.index("/", len(folder))] for path in inside if "/" in path[len(folder) :]}
        entries = [{"type": "directory", "oid": "0" * 40, "size": 0, "path": path} for path in sorted(folders)]
        return _ok(
            entries
            + [
                _entry(path, file)
                for path, file in sorted(inside.items())
                if recursive or "/" not in path[len(folder) :]
            ]
        )

    def _paths_info(self, request: HubRequest, found: dict[str, str]) -> HubAnswer:
        repo = self._repo(found)
        if refusal := self._may_not_read(request, repo):
            return refusal
        assert repo is not None
        files = repo.files(unquote(found["revision"]))
        if files is None:
            return _no_revision(found["revision"])
        if request.headers.get("content-type", "").startswith("application/json"):
            paths = request.document()["paths"]
        else:
            paths = parse_qs(request.body.decode()).get("paths", [])
        return _ok([_entry(path, files[path]) for path in paths if path in files])

    def _resolve(self, request: HubRequest, found: dict[str, str]) -> HubAnswer:
        repo = self._repo(found)
        if refusal := self._may_not_read(request, repo):
            return refusal
        assert repo is not None
        revision, path = unquote(found["revision"]), unquote(found["path"])
        files = repo.files(revision)
        if files is None:
            return _no_revision(revision)
        file = files.get(path)
        if file is None or file.content is None:
            return HubAnswer(status=404, headers={"X-Error-Code": "EntryNotFound"}, content=b"Entry not found")
        headers = {"X-Repo-Commit": repo.sha_of(revision), "ETag": f'"{file.etag}"', "Accept-Ranges": "bytes"}
        if file.is_lfs:
            headers |= {"X-Linked-Etag": f'"{file.oid}"', "X-Linked-Size": str(file.size)}
        return _ranged(file.content, request.headers.get("range"), headers)

    def _repo(self, found: dict[str, str]) -> HubRepo | None:
        kind = (found.get("kind") or "model").removesuffix("s")
        return self.repos.get((kind, found["id"]))

    def _may_not_see(self, request: HubRequest, repo: HubRepo | None) -> HubAnswer | None:
        if "authorization" in request.headers and request.user is None:
            return _invalid_token()
        if repo is None or (repo.private and request.user != repo.owner):
            status = 404 if request.user else 401
            said = {"error": "Repository not found" if request.user else "Invalid username or password."}
            return HubAnswer(status=status, headers={"X-Error-Code": "RepoNotFound"}, document=said)
        return None

    def _may_not_read(self, request: HubRequest, repo: HubRepo | None) -> HubAnswer | None:
        if refusal := self._may_not_see(request, repo):
            return refusal
        assert repo is not None
        if repo.granted is None or request.user == repo.owner or request.user in repo.granted:
            return None
        said = f"Access to {repo.kind} {repo.id} is restricted. You must have access to it."
        headers = {"X-Error-Code": "GatedRepo", "X-Error-Message": said}
        return HubAnswer(status=403 if request.user else 401, headers=headers, document={"error": said})

    def _may_not_write(self, request: HubRequest, repo: HubRepo | None) -> HubAnswer | None:
        if request.user is None:
            return _invalid_token()
        if request.headers["authorization"].removeprefix("Bearer ") in self.read_only_tokens:
            return HubAnswer(status=403, document={"error": "You must use a token with write access"})
        if request.path == "/api/repos/create":
            return None
        if repo is None:
            return self._may_not_see(request, repo)
        if repo.owner != request.user:
            return HubAnswer(status=403, document={"error": "You are not allowed to write here"})
        return None


@contextmanager
def reading_hub(token: str) -> Iterator[HubServer]:
    """A Hub that reports this token as read-only."""
    with HubServer() as hub:
        hub.users[token] = HUB_USER
        hub.read_only_tokens.add(token)
        yield hub


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: HubServer

    def do_GET(self) -> None:
        self._serve()

    do_HEAD = do_POST = do_PUT = do_GET

    def _serve(self) -> None:
        path = urlsplit(self.path).path
        headers = {name.lower(): value for name, value in self.headers.items()}
        trouble = self.hub.trouble(self.command, path)
        if trouble is not None and trouble.answer is None:
            self._cut(trouble.cut_after_bytes)
            return
        request = HubRequest(
            method=self.command,
            path=path,
            query=parse_qs(urlsplit(self.path).query),
            headers=headers,
            body=self._body(headers),
            user=self.hub.user_of(headers),
        )
        if trouble is not None:
            self.hub.requests.append(request)
        assert trouble is None or trouble.answer is not None
        self._send(trouble.answer if trouble and trouble.answer else self.hub.answer(request))

    def _body(self, headers: Mapping[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(headers.get("content-length") or 0))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _cut(self, after_bytes: int) -> None:
        """Take in that much of the body, then reset the connection as a dying link does."""
        self.rfile.read(after_bytes)
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.rfile.close()
        self.connection.close()

    def _send(self, answer: HubAnswer) -> None:
        self.send_response(answer.status)
        kind = "application/octet-stream" if answer.content is not None else "application/json"
        for name, value in {"Content-Type": kind, "Content-Length": str(len(answer.body)), **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def finish(self) -> None:
        try:
            super().finish()
        except (OSError, ValueError):  # the connection was cut on purpose, or by the other side
            self.rfile.close()

    def handle(self) -> None:
        try:
            super().handle()
        except (OSError, ValueError):
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""


def _ok(document: Any) -> HubAnswer:
    return HubAnswer(document=document)


def _invalid_token() -> HubAnswer:
    said = "Invalid credentials in Authorization header"
    return HubAnswer(status=401, headers={"X-Error-Message": said}, document={"error": said})


def _no_revision(revision: str) -> HubAnswer:
    said = {"error": f"Invalid rev id: {revision}"}
    return HubAnswer(status=404, headers={"X-Error-Code": "RevisionNotFound"}, document=said)


def _entry(path: str, file: HubFile) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "file", "oid": file.oid[:40], "size": file.size, "path": path}
    if file.is_lfs:
        entry["lfs"] = {"oid": file.oid, "size": file.size, "pointerSize": 134}
    return entry


def _ranged(content: bytes, wanted: str | None, headers: dict[str, str]) -> HubAnswer:
    found = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted or "")
    if not found:
        return HubAnswer(content=content, headers=headers)
    begin, end = int(found[1]), min(int(found[2] or len(content)), len(content) - 1)
    if begin >= len(content):
        return HubAnswer(status=416, content=b"", headers={"Content-Range": f"bytes */{len(content)}"})
    told = {**headers, "Content-Range": f"bytes {begin}-{end}/{len(content)}"}
    return HubAnswer(status=206, content=content[begin : end + 1], headers=told)
