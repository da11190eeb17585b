"""Pages of other sites: DNS rebinding, cross-site requests, frames, and answers that a browser could misuse."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from stationmaster.api.gate.policy import EVERYONE, GatePolicy
from tests.support.servers.gate_bench import GateBench, gate_bench

CHANGE = "/api/users/me/inbox/read"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GateBench]:
    """Nobody needs to sign in here: only the checks of this file stand between a page and the jobs."""
    policy = GatePolicy(
        everyone=EVERYONE, hosts=frozenset({"station.example.org"}), public_url="https://station.example.org"
    )
    with gate_bench(tmp_path_factory.mktemp("home"), gate=policy) as bench:
        yield bench


def port(bench: GateBench) -> str:
    return bench.url.rpartition(":")[2]


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "0.0.0.0:{port}",
        "localhost@evil.example",
        "[::ffff:127.0.0.1]",
        "10.0.0.1",
        "localhost.",
        "localhost:99999",
        "[::1",
    ],
)
def test_a_name_that_is_not_ours_is_refused_on_every_page(bench: GateBench, host: str) -> None:
    with bench.client(Host=host.format(port=port(bench))) as client:
        for path in ("/", "/api/server", "/api/openapi.json", "/sign-in", "/static/sign-in.js"):
            refused = client.get(path)
            assert refused.status_code == 421, (host, path)
            assert refused.headers["content-type"] == "application/problem+json"
        assert client.post(CHANGE, json={"up_to": 0}).status_code == 421


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]:80", "station.example.org"])
def test_our_own_names_are_answered_at_any_port(bench: GateBench, host: str) -> None:
    with bench.client(Host=host) as client:
        assert client.get("/api/server").status_code == 200


def test_load_balancers_may_ask_for_health_by_any_name(bench: GateBench) -> None:
    with bench.client(Host="10.1.2.3:8080") as client:
        assert (client.get("/healthz").status_code, client.get("/readyz").status_code) == (200, 200)


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://localhost:1",
        "http://127.0.0.1",
        "file://",
        "http://[",
        "",
        "http://station.example.org",
        "https://station.example.org:8443",
        "https://station.example.org.evil.example",
    ],
)
def test_another_origin_neither_reads_nor_changes(bench: GateBench, origin: str) -> None:
    with bench.client(Origin=origin) as client:
        for answer in (client.get("/api/server"), client.post(CHANGE, json={"up_to": 0})):
            assert answer.status_code == 403
            assert not [name for name in answer.headers if name.startswith("access-control")]


def test_our_own_origins_do(bench: GateBench) -> None:
    for origin in (bench.url, "https://station.example.org"):
        with bench.client(Origin=origin) as client:
            assert client.post(CHANGE, json={"up_to": 0}).status_code == 204


@pytest.mark.parametrize("site", ["cross-site", "same-site", "strange"])
def test_what_a_browser_sends_for_another_site_is_refused(bench: GateBench, site: str) -> None:
    with bench.client(**{"Sec-Fetch-Site": site}) as client:
        assert client.post(CHANGE, json={"up_to": 0}).status_code == 403
        assert client.get("/api/server").status_code == 403
        assert client.get("/api/server", headers={"Sec-Fetch-Mode": "navigate"}).status_code == 200, "a link"
        assert client.post(CHANGE, json={"up_to": 0}, headers={"Sec-Fetch-Mode": "navigate"}).status_code == 403


def test_a_preflight_is_granted_nothing(bench: GateBench) -> None:
    with bench.client(Origin=bench.url, **{"Access-Control-Request-Method": "POST"}) as client:
        answer = client.options(CHANGE)
    assert answer.status_code >= 400
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("path", ["/", "/sign-in", "/static/sign-in.js", "/api/server", "/api/nowhere", "/nowhere"])
def test_every_answer_has_the_headers_that_protect_browsers(bench: GateBench, path: str) -> None:
    with bench.client() as client:
        headers = client.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    policy = headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "unsafe-inline" not in policy
    if path.startswith("/api"):
        assert headers["cache-control"] == "no-store"
        assert "sandbox" in policy
    assert "strict-transport-security" not in headers
    assert "server" not in headers


def test_refusals_by_the_gate_have_them_too(bench: GateBench) -> None:
    with bench.client(Host="evil.example") as client:
        assert client.get("/api/server").headers["x-frame-options"] == "DENY"


def test_pages_have_no_inline_script(bench: GateBench) -> None:
    with bench.client() as client:
        for path in ("/", "/sign-in"):
            page = client.get(path)
            assert page.headers["content-type"].startswith("text/html")
            scripts = page.text.count("<script")
            assert scripts == page.text.count('<script src="/static/') == 1
            assert " style=" not in page.text
            assert " on" not in page.text.split("<body>")[1].replace(" on the server", "").replace(" once", "")


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py",
        "/static/%2e%2e/server.py",
        "/static/..%2fserver.py",
        "/static/%2e%2e%2f%2e%2e%2fconfig.py",
        "/static//etc/passwd",
        "/static/%2fetc/passwd",
        "/static/..%5cserver.py",
        "/static/%00",
        "/static/.",
        "/static/",
        "/static/sign-in.js%00.html",
        "/static/a" + "b" * 5000,
    ],
)
def test_static_files_lead_nowhere_else(bench: GateBench, path: str) -> None:
    with httpx.Client() as client:
        request = client.build_request("GET", bench.url)
        request.url = request.url.copy_with(raw_path=path.encode())
        answer = client.send(request)
    assert answer.status_code == 404, answer.text
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "path", ["/sign-in%0d%0aSet-Cookie:%20a=b", "/api/users/a%0d%0aX-Evil:%201/inbox", "//evil.example/"]
)
def test_an_address_cannot_add_headers_to_its_answer(bench: GateBench, path: str) -> None:
    with bench.client() as client:
        answer = client.get(f"{bench.url}{path}", follow_redirects=False)
    assert answer.status_code in (404, 422)
    assert "set-cookie" not in answer.headers
    assert "x-evil" not in answer.headers
    assert "location" not in answer.headers
