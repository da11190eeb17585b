"""Megabytes and packages that `pip install .` installs without extras, with the page; trackside needs none of them."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from _report import print_figure, report

BUDGET_MEGABYTES = 130.0
BUDGET_PACKAGES = 50
_CHECKOUT = Path(__file__).resolve().parent.parent
_NOT_OURS = ("pip", "setuptools", "wheel", "_distutils_hack", "pkg_resources", "distutils-precedence.pth")

# Every module of trackside, in an interpreter that sees no installed package. Those for a framework need it.
_IMPORT_TRACKSIDE = """
import importlib, json, pkgutil, sys
sys.path.insert(0, sys.argv[1])
import trackside
for module in pkgutil.walk_packages(trackside.__path__, "trackside."):
    try:
        if module.name != "trackside.__main__":
            importlib.import_module(module.name)
    except ModuleNotFoundError:
        if not module.name.startswith("trackside.integrations."):
            raise
names = {name.partition(".")[0] for name in sys.modules}
print(json.dumps(sorted(names - sys.stdlib_module_names - {"trackside", "__main__"})))
"""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        python = _fresh_install(Path(folder) / "venv")
        packages = _packages(python)
        site = Path(_output(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
        megabytes = sum(_bytes(entry) for entry in site.iterdir() if not _is_tooling(entry)) / 1e6
        page = _bytes(site / "stationmaster/api/page") / 1e6
        strangers = json.loads(_output(python, "-I", "-S", "-c", _IMPORT_TRACKSIDE, str(_CHECKOUT / "src")))
    assert page > 0, "it was installed with the page"
    print_figure("the page in it", page, "MB")
    report("install without extras: size", megabytes, "MB", at_most=BUDGET_MEGABYTES)
    report("install without extras: packages", len(packages), "packages", at_most=BUDGET_PACKAGES)
    report("trackside: packages", len(strangers), "packages", at_most=0)
    return 0


def _fresh_install(folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    install = ["-m", "pip", "install", "-q", "--disable-pip-version-check", str(_CHECKOUT)]
    subprocess.run([str(python), *install], check=True, stderr=subprocess.DEVNULL)
    return python


def _packages(python: Path) -> list[str]:
    """All installed packages, including ours, without the tools that every environment has."""
    found = json.loads(_output(python, "-m", "pip", "list", "--format=json", "--disable-pip-version-check"))
    return [one["name"] for one in found if one["name"] not in _NOT_OURS]


def _is_tooling(entry: Path) -> bool:
    return entry.name in _NOT_OURS or entry.name.startswith(("pip-", "setuptools-", "wheel-"))


def _bytes(entry: Path) -> int:
    if entry.is_file():
        return entry.stat().st_size
    return sum(file.stat().st_size for file in entry.rglob("*") if file.is_file())


def _output(python: Path, *arguments: str) -> str:
    return subprocess.run([str(python), *arguments], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
