"""The page is built while Stationmaster is installed: from a source archive, by a Node that pip installs."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.programs import ROOT

PAGE = Path("src/stationmaster/api/page")
IN_WHEEL = "stationmaster/api/page/"


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a source archive of this checkout contains; the page's packages are those of the checkout."""
    folder = tmp_path_factory.mktemp("sources")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder], cwd=ROOT, check=True,
        capture_output=True,
    )  # fmt: skip
    (archive,) = folder.glob("*.tar.gz")
    subprocess.run(["tar", "-xzf", archive, "-C", folder], check=True)
    (unpacked,) = (each for each in folder.iterdir() if each.is_dir())
    assert not (unpacked / "web/node_modules").exists()
    assert not (unpacked / PAGE).exists()
    (unpacked / "web/node_modules").symlink_to(ROOT / "web/node_modules")
    return unpacked


def build(sources: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, sources / "web/build.py"], env={**os.environ, **environ}, capture_output=True, text=True
    )


def wheel(sources: Path, folder: Path, **environ: str) -> set[str]:
    """The names in the wheel that pip builds."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(folder),
        str(sources),
    ]
    subprocess.run(command, env={**os.environ, **environ}, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    with zipfile.ZipFile(built) as opened:
        return set(opened.namelist())


def contents(page: Path) -> Mapping[str, bytes]:
    return {file.relative_to(page).as_posix(): file.read_bytes() for file in page.rglob("*") if file.is_file()}


def test_a_wheel_built_from_the_source_archive_has_the_page(sources: Path, tmp_path: Path) -> None:
    names = wheel(sources, tmp_path)
    assert {f"{IN_WHEEL}index.html", f"{IN_WHEEL}theme.js.gz"} < names
    scripts = {name for name in names if name.startswith(f"{IN_WHEEL}assets/") and name.endswith(".js")}
    assert scripts
    assert {f"{script}.gz" for script in scripts} < names
    assert not [name for name in names if "node_modules" in name or ".made-from" in name or name.endswith(".ts")]
    assert {name.split("/")[0] for name in names} == {"stationmaster", "trackside", "stationmaster-0.1.0.dist-info"}


def test_a_wheel_without_the_page_leaves_out_even_one_that_is_built(sources: Path, tmp_path: Path) -> None:
    assert build(sources).returncode == 0
    names = wheel(sources, tmp_path, STATIONMASTER_WITHOUT_PAGE="1")
    assert "stationmaster/api/page_files.py" in names
    assert not [name for name in names if name.startswith(IN_WHEEL)]


def test_a_page_is_built_again_only_if_its_sources_have_changed(sources: Path) -> None:
    assert build(sources).returncode == 0
    built = (sources / PAGE).stat().st_ino
    for generated in ("openapi.json", "src/api/schema.ts", "src/.main.tsx.swp", "__pycache__/npm.pyc", "tests/new.ts"):
        (sources / "web" / generated).parent.mkdir(exist_ok=True)
        (sources / "web" / generated).write_text("")
    assert build(sources).returncode == 0
    assert (sources / PAGE).stat().st_ino == built


def test_builds_at_the_same_time_make_one_page_which_differs_only_by_what_was_changed(sources: Path) -> None:
    assert build(sources).returncode == 0
    before = contents(sources / PAGE)
    page = sources / "web/index.html"
    page.write_text(page.read_text().replace("<title>Stationmaster", "<title>Changed"))
    both = [subprocess.Popen([sys.executable, sources / "web/build.py"]) for _ in range(2)]
    assert [each.wait() for each in both] == [0, 0]
    after = contents(sources / PAGE)
    assert after.keys() == before.keys()
    assert {name for name in after if after[name] != before[name]} == {"index.html", ".made-from"}
    assert after["index.html"] == before["index.html"].replace(b"<title>Stationmaster", b"<title>Changed")
    assert after["index.html"] != before["index.html"]
    assert not list((sources / PAGE).parent.glob(".page-*"))


def test_without_a_registry_the_build_says_why_and_keeps_the_old_page(sources: Path, tmp_path: Path) -> None:
    shutil.copytree(sources / "web", tmp_path / "web", ignore=shutil.ignore_patterns("node_modules"))
    (tmp_path / PAGE).mkdir(parents=True)
    (tmp_path / PAGE / "index.html").write_text("old")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # nobody listens, and nobody else gets the port
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
        failed = build(
            tmp_path, npm_config_registry=address, npm_config_cache=str(tmp_path), npm_config_fetch_retries="0"
        )
    assert failed.returncode == 1
    error, hint = failed.stderr.splitlines()
    assert error.startswith("error: the page could not be built: npm could not install its packages: ")
    assert address in error
    assert hint.startswith("hint: ")
    assert "STATIONMASTER_WITHOUT_PAGE=1" in hint
    assert contents(tmp_path / PAGE) == {"index.html": b"old"}


def test_the_lock_file_names_no_registry_and_a_hash_of_every_package() -> None:
    lock = (ROOT / "web/package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in lock
    assert lock.count('"integrity"') == lock.count('"node_modules/')
