"""Installing ai-toolkit on a bare machine: a real environment and pip, with tiny packages and our own `git`."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from stationmaster.recipes.places import BUILTIN

PACKAGES = ("torch-2.13.0", "torchvision-0.28.0", "torchaudio-2.11.0", "torchcodec-0.15.0", "setuptools-69.5.1")
GIT = """#!/bin/sh
echo "git $*" >> "$CALLS"
case "$1" in
  init) mkdir -p "$3" ;;
  -C) if [ "$3" = checkout ]; then echo > "$2/run.py"; echo torch > "$2/requirements.txt"; fi ;;
esac
"""


class Machine:
    def __init__(self, folder: Path) -> None:
        self.trainer = folder / "app" / "ai-toolkit"
        self.calls, self.wheels = folder / "calls", folder / "wheels"
        self.wheels.mkdir(parents=True)
        self.calls.touch()
        (folder / "bin").mkdir()
        (folder / "bin" / "git").write_text(GIT)
        (folder / "bin" / "git").chmod(0o755)
        (folder / "ensurepip.py").write_text("raise SystemExit(1)  # a package apart, as on Ubuntu\n")
        self.environ = {
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "CALLS": str(self.calls),
            "PYTHONPATH": str(folder),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_COMPILE": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def install(self, *more: str, **environ: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, str(BUILTIN / "flux-lora" / "install.py"), f"--trainer={self.trainer}", *more]
        environ = {**self.environ, **environ}
        return subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)

    def offer(self, *packages: str) -> None:
        """Wheels that hold nothing but their names and versions."""
        for package in packages:
            name, _, version = package.partition("-")
            about = f"{package}.dist-info"
            with zipfile.ZipFile(self.wheels / f"{package}-py3-none-any.whl", "w") as wheel:
                wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
                wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
                wheel.writestr(f"{about}/RECORD", "")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_cut_off_completed_and_then_left_alone(machine: Machine) -> None:
    cut_off = machine.install()
    assert (cut_off.returncode, machine.trainer.exists()) == (1, False)
    assert "install torch==2.13.0" in cut_off.stdout.splitlines()[-1]

    machine.offer(*PACKAGES)
    done = machine.install()
    assert done.returncode == 0, done.stdout + done.stderr
    installed = {path.name.removesuffix(".dist-info") for path in machine.trainer.glob("venv/lib/*/site-packages/*")}
    assert set(PACKAGES) <= installed
    assert "27a03a91f23eb1b757d5ec2e80ee3e129cfcc350" in machine.calls.read_text()

    calls, before = machine.calls.read_text(), machine.trainer.stat().st_mtime_ns
    again = machine.install()
    assert (again.returncode, again.stdout) == (0, f"ai-toolkit is in {machine.trainer}\n")
    assert (machine.calls.read_text(), machine.trainer.stat().st_mtime_ns) == (calls, before)
    left = {path.name for path in machine.trainer.parent.iterdir()}
    assert left == {"ai-toolkit", "ai-toolkit.lock"}


def test_a_python_that_has_the_packages_gets_none(machine: Machine) -> None:
    done = machine.install("--python=/opt/python")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path.name for path in machine.trainer.iterdir()} == {"run.py", "requirements.txt"}


def test_a_folder_with_something_else_in_it_is_left_alone(machine: Machine) -> None:
    machine.trainer.mkdir(parents=True)
    (machine.trainer / "mine.txt").touch()
    refused = machine.install()
    assert (refused.returncode, "holds something else" in refused.stdout) == (1, True)
    assert [path.name for path in machine.trainer.iterdir()] == ["mine.txt"]


def test_a_machine_without_git_is_told_what_to_do(machine: Machine) -> None:
    refused = machine.install(PATH="/nowhere")
    assert (refused.returncode, refused.stdout.startswith("error: git is needed")) == (1, True)
