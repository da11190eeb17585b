"""Install ai-toolkit where the machine's image does not have it: python3 install.py --trainer DIR [--python PYTHON]

Nothing changes where it is installed already. It is put together beside its place and renamed at the very end, so an
installation that was cut off is begun again by the next try.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from trainer_python import ENVIRONMENT

REPOSITORY = "https://github.com/ostris/ai-toolkit.git"
COMMIT = "27a03a91f23eb1b757d5ec2e80ee3e129cfcc350"
# As its docker/Dockerfile has them. Its requirements.txt names none of the first three, and its config module imports
# torchaudio; the last two are installed after the requirements, whose own versions do not go with this torch.
TORCH = ("torch==2.13.0", "torchvision==0.28.0", "torchaudio==2.11.0")
AFTERWARDS = ("torchcodec==0.15.0", "setuptools==69.5.1")


class Impossible(Exception):
    """This machine cannot be made ready; the message says what to do."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trainer", type=Path, required=True)
    parser.add_argument("--python", default="", help="a Python that has ai-toolkit's packages; none is installed then")
    arguments = parser.parse_args()
    try:
        install(arguments.trainer, has_packages=bool(arguments.python))
    except Impossible as problem:
        print(f"error: {problem}")
        return 1
    except subprocess.CalledProcessError as problem:
        print(f"error: `{' '.join(map(str, problem.cmd))}` failed with exit code {problem.returncode}")
        return 1
    return 0


def install(trainer: Path, *, has_packages: bool) -> None:
    """ai-toolkit lies in `trainer`, whole, with an environment of its own unless there is one that has its packages."""
    if is_installed(trainer):
        print(f"ai-toolkit is in {trainer}")
        return
    try:
        trainer.parent.mkdir(parents=True, exist_ok=True)
        with _alone(trainer):
            if not is_installed(trainer):
                _install(trainer, has_packages=has_packages)
    except OSError as problem:
        raise Impossible(f"ai-toolkit cannot be installed in {trainer} ({problem}); name another folder") from problem


def is_installed(trainer: Path) -> bool:
    return (trainer / "run.py").is_file()


def _install(trainer: Path, *, has_packages: bool) -> None:
    if trainer.exists() and any(trainer.iterdir()):
        raise Impossible(f"{trainer} holds something else than ai-toolkit; name another folder")
    unfinished = trainer.with_name(trainer.name + ".new")
    shutil.rmtree(unfinished, ignore_errors=True)
    _fetch(unfinished)
    if not has_packages:
        _install_packages(unfinished)
    unfinished.rename(trainer)


def _fetch(folder: Path) -> None:
    if shutil.which("git") is None:
        raise Impossible("git is needed to fetch ai-toolkit; install it, or use the image ostris/aitoolkit")
    _run("git", "init", "--quiet", folder)
    _run("git", "-C", folder, "fetch", "--quiet", "--depth", "1", REPOSITORY, COMMIT)
    _run("git", "-C", folder, "checkout", "--quiet", "--detach", COMMIT)


def _install_packages(folder: Path) -> None:
    """Everything into an environment of its own: a distribution's Python refuses packages that it did not install."""
    pip = _environment(folder / ENVIRONMENT)
    pins = folder / ENVIRONMENT / "pinned.txt"
    pins.write_text("\n".join(TORCH) + "\n", encoding="utf-8")
    _run(*pip, "install", *TORCH)
    _run(*pip, "install", "--constraint", pins, "--requirement", folder / "requirements.txt")
    _run(*pip, "install", "--upgrade", *AFTERWARDS)


def _environment(folder: Path) -> Sequence[str | Path]:
    """Make an environment; the command that installs into it. Ubuntu has venv, but its ensurepip is a package apart."""
    _run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    if subprocess.run([python, "-m", "ensurepip", "--upgrade"], check=False).returncode == 0:
        return (python, "-m", "pip")
    outside = (sys.executable, "-m", "pip", "--python", python)
    if subprocess.run([*outside, "--version"], check=False).returncode == 0:
        return outside
    raise Impossible(f"{sys.executable} has neither ensurepip nor a pip of version 22.3; install python3-venv")


@contextmanager
def _alone(trainer: Path) -> Iterator[None]:
    """Of two jobs on one machine, the second waits for what the first one installs."""
    lock = os.open(trainer.with_name(trainer.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True)


if __name__ == "__main__":
    sys.exit(main())
