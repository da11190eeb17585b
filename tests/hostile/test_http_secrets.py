"""Tokens, codes and cookies never reach the log of a process, however much it logs."""

from __future__ import annotations

import socket
from pathlib import Path

import httpx

from tests.support.servers.serve_process import ServeProcess, served


def test_no_secret_of_any_request_is_in_what_the_process_says(tmp_path: Path) -> None:
    with served(tmp_path, "--log-level", "DEBUG", command="up") as up:
        secrets = ask_in_every_way(up)
        up.wait_for("worker.started")
        assert up.end() == 0
    said = up.out.replace(up.announced, "", 1) + up.err
    assert "worker.left" in said
    for secret in (*secrets, up.code, up.token):
        assert secret not in said


def ask_in_every_way(up: ServeProcess) -> list[str]:
    wrong, typed, in_query, in_path = "sm_WRONGWRONG", "CODE-TYPED-WRONG", "QUERYSECRET", "PATHSECRET"
    ticket, cookie, body = "TICKETSECRET", "COOKIESECRET", "BODYSECRET"
    with httpx.Client(base_url=up.url, timeout=60, verify=False) as client:
        bearer = {"Authorization": f"Bearer {up.token}"}
        assert client.get("/api/server", headers=bearer).status_code == 200
        assert client.get("/api/server", headers={"Authorization": f"Bearer {wrong}"}).status_code == 401
        assert client.post("/api/session", json={"code": typed}).status_code == 401
        assert client.get(f"/api/server?token={in_query}").status_code == 401
        assert client.get(f"/api/nowhere/{in_path}", headers=bearer).status_code == 404
        assert client.post(f"/api/uploads/{ticket}", headers={"Authorization": f"Bearer {ticket}"}).status_code == 404
        assert client.post("/api/users/me/inbox/read", headers=bearer, content=body).status_code == 422
        assert client.post("/api/inbox/test-operators", headers=bearer, json={"token": body}).status_code == 422
        opened = client.post("/api/session", json={"code": up.code})
        assert opened.status_code == 200
        csrf_token = opened.json()["csrf_token"]
        assert client.delete("/api/session", headers={"X-CSRF-Token": "CSRFSECRET"}).status_code == 403
        ((name, session),) = client.cookies.items()
        assert (
            httpx.get(f"{up.url}/api/session", headers={"Cookie": f"{name}={cookie}"}, verify=False).status_code == 401
        )
        assert client.delete("/api/session", headers={"X-CSRF-Token": csrf_token}).status_code == 204
    host, _, port = up.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(
            b"GET /MALFORMED HTTP/1.1\r\nHost: localhost\r\nBroken Header: Bearer " + wrong.encode() + b"\r\n\r\n"
        )
        assert b" 400 " in connection.recv(1000)
    return [wrong, typed, in_query, in_path, ticket, cookie, body, csrf_token, session, "CSRFSECRET"]
