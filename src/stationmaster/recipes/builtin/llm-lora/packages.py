"""Install the packages that train.py needs into this Python, and keep its PyTorch. Standard library only."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
from importlib import metadata
from pathlib import Path

#: The newest versions that this recipe was run with; it also ran with transformers 5.17 and datasets 4.8.5. No later
#: release reaches a machine by itself. What they need in turn is not pinned: it depends on the machine.
REQUIREMENTS = (
    "trl==1.16.0",
    "transformers==5.22.2",
    "peft==0.21.2",
    "accelerate==1.15.0",
    "datasets==5.2.0",
    "safetensors==0.8.0",
)


def main() -> int:
    """Run pip, which does nothing where all of them are installed; returns its exit status."""
    with tempfile.TemporaryDirectory() as folder:
        constraints = Path(folder) / "constraints.txt"
        constraints.write_text("".join(f"{line}\n" for line in kept()), encoding="utf-8")
        return subprocess.run(pip_command(constraints, is_managed=is_externally_managed()), check=False).returncode


def kept() -> list[str]:
    """What is installed and must stay: the machine's PyTorch is built for its driver."""
    try:
        return [f"torch=={metadata.version('torch')}"]
    except metadata.PackageNotFoundError:
        return []


def pip_command(constraints: Path, *, is_managed: bool) -> list[str]:
    """Where the system manages this Python, as on Ubuntu 24.04, the packages go to the user's own folder instead."""
    where = ["--user", "--break-system-packages"] if is_managed else []
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    return [*pip, *where, "--constraint", str(constraints), *REQUIREMENTS]


def is_externally_managed() -> bool:
    """Whether pip refuses to change this Python, because the system's package manager does that."""
    marker = Path(sysconfig.get_path("stdlib")) / "EXTERNALLY-MANAGED"
    return sys.prefix == sys.base_prefix and marker.is_file()


if __name__ == "__main__":
    sys.exit(main())
