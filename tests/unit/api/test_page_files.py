"""The files of the page as a browser fetches them: kept, compressed, and not counted as requests."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from stationmaster.api.gate.policy import GatePolicy
from stationmaster.api.page_files import FOLDER, PageFiles
from tests.support.servers.gate_bench import GateBench, gate_bench

SCRIPT = max((FOLDER / "assets").glob("index-*.js"), key=lambda file: file.stat().st_size, default=FOLDER / "no page")
SCRIPT_PATH = f"/assets/{SCRIPT.name}"
PROBLEM = "application/problem+json"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GateBench]:
    with gate_bench(tmp_path_factory.mktemp("home"), gate=GatePolicy(requests_per_minute=5)) as bench:
        yield bench


@pytest.mark.parametrize(
    ("accepted", "is_compressed"),
    [
        ("gzip", True),
        ("br, gzip;q=0.5", True),
        ("*", True),
        ("identity", False),
        ("gzip;q=0", False),
        ("gzip;q=0.000, *", False),
        ("gzip;q=nonsense", False),
        ("", False),
    ],
)
def test_a_script_is_compressed_for_browsers_that_can_read_it(
    bench: GateBench, accepted: str, is_compressed: bool
) -> None:
    with bench.client(**{"Accept-Encoding": accepted}) as client, client.stream("GET", SCRIPT_PATH) as answer:
        sent = b"".join(answer.iter_raw())
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.headers["vary"] == "Accept-Encoding"
    assert (answer.headers.get("content-encoding") == "gzip") is is_compressed
    assert (gzip.decompress(sent) if is_compressed else sent) == SCRIPT.read_bytes()


def test_browsers_keep_what_is_named_by_its_content_and_ask_again_for_the_rest(bench: GateBench) -> None:
    with bench.client() as client:
        assert client.get(SCRIPT_PATH).headers["cache-control"] == "public, max-age=31536000, immutable"
        theme = client.get("/theme.js")
        assert theme.headers["cache-control"] == "no-cache"
        again = client.get("/theme.js", headers={"If-None-Match": theme.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == theme.headers["etag"]
        assert again.headers["content-security-policy"]
        other = client.get("/theme.js", headers={"If-None-Match": '"another"'})
        assert (other.status_code, other.text) == (200, theme.text)


@pytest.mark.parametrize("path", ["/", "/jobs/1", "/theme.js", SCRIPT_PATH])
def test_head_says_what_get_would(bench: GateBench, path: str) -> None:
    with bench.client() as client:
        head, got = client.head(path), client.get(path)
    assert (head.status_code, head.content) == (200, b"")
    for name in ("content-type", "content-length", "etag"):
        assert head.headers.get(name) == got.headers.get(name)


def test_every_address_but_those_of_the_api_is_the_page(bench: GateBench) -> None:
    with bench.client(bench.token) as client:
        for path in ("/", "/sign-in?next=/jobs/1", "/jobs/a%20b", "/nowhere/at/all", "/apis", "/index.html"):
            page = client.get(path)
            assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8"), path
        for path, status in (("/api/nowhere", 404), ("/api/", 404), ("/api", 404), ("/assets/old.js", 404)):
            refused = client.get(path)
            assert (refused.status_code, refused.headers["content-type"]) == (status, PROBLEM), path
        for refused in (client.post("/"), client.delete("/jobs/1"), client.put("/api/server")):
            assert (refused.status_code, refused.headers["content-type"]) == (405, PROBLEM)


def test_files_of_the_page_are_not_counted_as_requests_and_need_no_session(bench: GateBench) -> None:
    name = f"stationmaster_session_{bench.station.store.installation_id}"
    with bench.client(Cookie=f"{name}=over") as client:
        assert {client.get(SCRIPT_PATH).status_code for _ in range(20)} == {200}
        assert client.get("/").status_code == 200


def test_every_file_of_the_built_page_is_served() -> None:
    files = PageFiles()
    built = [file.relative_to(FOLDER).as_posix() for file in FOLDER.rglob("*") if file.is_file()]
    expected = {path for path in built if not path.endswith(".gz") and path not in ("index.html", ".made-from")}
    assert expected
    assert {path for path in built if files.file(path) is not None} == expected


def test_an_installation_without_the_page_says_so(tmp_path: Path) -> None:
    assert PageFiles(tmp_path / "nothing").start() is None
    with gate_bench(tmp_path, page=tmp_path / "nothing") as bench, bench.client() as client:
        missing: httpx.Response = client.get("/")
        assert missing.status_code == 404
        assert "without" in missing.json()["detail"]
        assert "npm" in missing.json()["hint"]
        assert client.get("/healthz").status_code == 200
