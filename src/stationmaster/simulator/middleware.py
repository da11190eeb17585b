"""Middleware for every request: rate limits, and faults in requests and answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from stationmaster.simulator.cloud import Cloud, target_of
from stationmaster.simulator.faults import FaultKind, InjectedFault, Target
from stationmaster.simulator.operations import operation_of
from stationmaster.simulator.rate_limits import SHAPES, ErrorBody, RateLimits, too_many

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Connections:
    """The open connections by client address, so that one can be dropped without an answer."""

    def __init__(self) -> None:
        self._transports: dict[tuple[str, int], asyncio.Transport] = {}

    def opened(self, client: tuple[str, int], transport: asyncio.Transport) -> None:
        self._transports[client] = transport

    def closed(self, client: tuple[str, int]) -> None:
        self._transports.pop(client, None)

    async def cut(self, client: tuple[str, int], receive: Receive) -> None:
        transport = self._transports.get(client)
        if transport is not None:
            transport.abort()
            while (await receive())["type"] != "http.disconnect":
                pass

    def cut_all(self) -> None:
        """Drop all connections, also of clients that connected while the server was closing."""
        for transport in self._transports.values():
            transport.abort()


class FaultMiddleware:
    """Wraps the API. Paths are accepted with and without a trailing slash, as by the service."""

    def __init__(self, app: App, *, cloud: Cloud, limits: RateLimits, connections: Connections) -> None:
        self._app = app
        self._cloud = cloud
        self._limits = limits
        self._connections = connections
        self._limited = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["path"] = scope["path"].rstrip("/") or "/"
        found = operation_of(scope["method"], scope["path"])
        if found is None:
            await self._app(scope, receive, send)
            return
        operation, instance_id = found
        body = await _read(receive)
        target = self._target(operation.name, instance_id, body)
        refused = self._limits.refuse(_caller(scope), operation) or self._limited_by_fault(target, operation.seconds)
        if refused is not None:
            await _send(send, 429, refused)
            return
        await self._pass(scope, receive, send, body, target)

    async def _pass(self, scope: Scope, receive: Receive, send: Send, body: bytes, target: Target) -> None:
        """Execute the request and send its answer, or not, depending on the armed faults."""
        error = self._take(FaultKind.SERVER_ERROR, target)
        if error is not None and not error.after_effect:
            await _send_error(send, error)
            return
        answer: list[Message] = []
        await self._app(scope, _replay(body), _collect(answer))
        worked = bool(answer) and answer[0]["status"] == 200
        slow = self._take(FaultKind.SLOW_ANSWER, target)
        if slow is not None:
            await self._cloud.sleep(slow.seconds)
        if error is not None:
            await _send_error(send, error)
        elif worked and self._take(FaultKind.LOST_ANSWER, target):
            await self._connections.cut(tuple(scope["client"]), receive)
        else:
            for message in answer:
                await send(message)

    def _target(self, operation: str, instance_id: int | None, body: bytes) -> Target:
        if instance_id is not None:
            instance = self._cloud.records.instances.get(instance_id)
            return target_of(instance, operation) if instance else Target(operation=operation, instance_id=instance_id)
        if operation == "create":
            return Target(operation=operation, label=_label(body))
        return Target(operation=operation)

    def _limited_by_fault(self, target: Target, threshold: float) -> ErrorBody | None:
        fault = self._take(FaultKind.RATE_LIMITED, target)
        if fault is None:
            return None
        self._limited += 1
        return too_many(fault.shape or SHAPES[self._limited % len(SHAPES)], threshold=threshold, wait=fault.seconds)

    def _take(self, kind: FaultKind, target: Target) -> InjectedFault | None:
        return self._cloud.faults.take(kind, target, now=self._cloud.now())


def _caller(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"authorization":
            return str(value.decode("latin-1"))
    return str(scope["client"][0])


async def _read(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return bytes(body)


def _label(body: bytes) -> str | None:
    try:
        document = json.loads(body)
    except ValueError:
        return None
    return document.get("label") if isinstance(document, dict) else None


def _replay(body: bytes) -> Receive:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def _collect(answer: list[Message]) -> Send:
    async def send(message: Message) -> None:
        answer.append(message)

    return send


async def _send_error(send: Send, fault: InjectedFault) -> None:
    text = (fault.message or "upstream error").encode()
    await _send(send, fault.status or 502, ErrorBody(body=text, content_type="text/plain"))


async def _send(send: Send, status: int, content: ErrorBody) -> None:
    headers = [
        (b"content-type", content.content_type.encode()),
        (b"content-length", str(len(content.body)).encode()),
        *((name.lower().encode(), value.encode()) for name, value in content.headers),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content.body})
