"""`stationmaster serve` as a process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from stationmaster.api.server import serve as run_service
from stationmaster.config import load_settings
from stationmaster.errors import ConfigInvalid


def serve(home: Path, *arguments: str, public_url: str = "") -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "stationmaster", "--home", str(home), "serve", *arguments]
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "STATIONMASTER_SERVE__PUBLIC_URL": public_url}
    return subprocess.Popen(argv, env=environ, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_it_says_where_it_answers_and_leaves_when_told(tmp_path: Path) -> None:
    with serve(tmp_path, "--port", "0") as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        assert httpx.get(f"{url}/readyz", timeout=150).json() == {"ready": True, "uploads": False}
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=150)
    assert "Traceback" not in said


def test_a_public_address_without_a_bucket_is_told_at_the_start(tmp_path: Path) -> None:
    with serve(tmp_path, "--port", "0", public_url="https://station.example.org") as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        assert httpx.get(f"{url}/readyz", timeout=150).json() == {"ready": True, "uploads": False}
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=150)
    assert "uploads.off" in said
    assert "bucket.name" in said


def test_a_port_in_use_is_one_line_and_a_hint(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        environ = {"STATIONMASTER_HOME": str(tmp_path), "STATIONMASTER_SERVE__PORT": port}
        with pytest.raises(ConfigInvalid, match=port) as told:
            run_service(load_settings(environ, folder=tmp_path), environ, ready=print)
    assert told.value.hint
