"""Pages of other sites: DNS rebinding, cross-site requests, frames, and answers that a browser could misuse."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from typing import NamedTuple

import pytest

from stationmaster.api.gate.policy import EVERYONE, GatePolicy
from tests.support.servers.gate_bench import GateBench, gate_bench

CHANGE = "/api/users/me/inbox/read"


class Answer(NamedTuple):
    status: int
    media_type: str
    text: str


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
        for path in ("/", "/api/server", "/api/openapi.json", "/sign-in", "/theme.js"):
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


@pytest.mark.parametrize(
    "path", ["/", "/sign-in", "/theme.js", "/assets/nothing.js", "/api/server", "/api/nowhere", "/nowhere"]
)
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


def test_the_page_has_no_inline_script_and_nothing_from_elsewhere(bench: GateBench) -> None:
    with bench.client() as client:
        for path in ("/", "/sign-in", "/jobs/../<script>alert(1)</script>"):
            page = client.get(path)
            assert page.headers["content-type"].startswith("text/html")
            scripts = re.findall(r"<script[^>]*>[^<]*", page.text)
            assert scripts
            assert all(re.fullmatch(r'<script [^>]*src="/[a-zA-Z][^"]*"[^>]*>', script) for script in scripts)
            assert "alert" not in page.text
            assert not re.search(r'<style|\sstyle=|\son[a-z]+=|(src|href)="(?!/[a-zA-Z])', page.text)


def test_every_answer_of_the_page_allows_styles_by_a_number_of_its_own(bench: GateBench) -> None:
    with bench.client() as client:
        pages = [client.get("/") for _ in range(3)]
    numbers = [re.findall(r'nonce="([^"]+)"', page.text) for page in pages]
    assert len({one for found in numbers for one in found}) == len(pages)
    for page, (number,) in zip(pages, numbers, strict=True):
        assert len(number) >= 20
        policy = page.headers["content-security-policy"]
        assert f"style-src 'self' 'nonce-{number}'" in policy
        assert policy.count("nonce-") == 1, "scripts get no number"
        assert page.headers["cache-control"] == "no-cache"
        assert "etag" not in page.headers, "a kept page would meet another answer's policy"


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../server.py",
        "/assets/%2e%2e/server.py",
        "/assets/..%2fserver.py",
        "/assets/%2e%2e%2f%2e%2e%2fconfig.py",
        "/assets//etc/passwd",
        "/assets/%2fetc/passwd",
        "/assets/..%5cserver.py",
        "/assets/%00",
        "/assets/.",
        "/assets/",
        "/assets/index.js%00.html",
        "/assets/a" + "b" * 5000,
        "//etc/passwd",
        "/%5c%5cevil.example",
        "/api",
        "/api/../index.html",
    ],
)
def test_files_of_the_page_lead_nowhere_else(bench: GateBench, path: str) -> None:
    answer = get_raw(bench, path)
    assert (answer.status, answer.media_type) == (404, "application/problem+json"), answer.text


@pytest.mark.parametrize("path", ["/../app.py", "/%2e%2e/app.py", "/page_files.py", "/.made-from", "/index.html.gz"])
def test_other_files_are_not_shown_in_place_of_the_page(bench: GateBench, path: str) -> None:
    with bench.client() as client:
        page = without_number(client.get("/").text)
    assert without_number(get_raw(bench, path).text) == page


def get_raw(bench: GateBench, path: str) -> Answer:
    """Ask for exactly this path: httpx would tidy it before."""
    with closing(HTTPConnection("127.0.0.1", int(port(bench)))) as connection:
        connection.request("GET", path)
        got = connection.getresponse()
        return Answer(got.status, got.headers["content-type"], got.read().decode())


def without_number(page: str) -> str:
    return re.sub(r'nonce="[^"]+"', "", page)


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
