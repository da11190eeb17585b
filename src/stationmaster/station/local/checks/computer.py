"""Checks of this computer: Python, disk, GPUs, tools."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec

from stationmaster import __version__
from stationmaster.model import FoundGpus, GpuMaker
from stationmaster.settings import Settings
from stationmaster.station.checks import CheckLevel, CheckResult, failed, passed, warned

_OLDEST_PYTHON = (3, 11)
_LEAST_GIB = 1.0
_FEW_GIB = 10.0  # a model with its checkpoints and samples may need as much


def program_results() -> Iterator[CheckResult]:
    yield passed("version", f"stationmaster {__version__}")
    version = sys.version.split()[0]
    if sys.version_info[:2] < _OLDEST_PYTHON:  # as a package of the system may be patched to allow
        yield failed("python", f"{version} at {sys.executable} is too old", "install Python 3.11 or newer")
    else:
        yield passed("python", f"{version} at {sys.executable}")


def disk_result(settings: Settings) -> CheckResult:
    home = next(path for path in (settings.home, *settings.home.parents) if path.exists())
    free = shutil.disk_usage(home).free / 1024**3
    detail, hint = f"{free:.1f} GiB free", "free some disk space for models; `stationmaster jobs prune` lists old jobs"
    if free <= _LEAST_GIB:
        return failed("disk", detail, hint)
    return warned("disk", detail, hint) if free < _FEW_GIB else passed("disk", detail)


def gpu_results(found: FoundGpus, *, is_default: bool) -> Iterator[CheckResult]:
    """The GPUs of this computer that jobs can use with provider loopback; `is_default`: if that is the default."""
    for gpu in found.gpus:
        cuda = f", CUDA {gpu.cuda:g}" if gpu.cuda is not None else ""
        tried = "" if gpu.maker is GpuMaker.NVIDIA else f"; not confirmed on {gpu.maker}'s GPUs"
        detail = f"{gpu.number}: {gpu}{cuda}, {gpu.id}"
        unusable = f"; jobs cannot use it: {gpu.unusable}" if gpu.unusable else ""
        yield passed("gpu", f"{detail}{tried}{unusable}")
    level = CheckLevel.FAIL if is_default else CheckLevel.WARN
    for problem in found.problems:
        yield CheckResult("gpu", level, problem, "repair the driver, or remove the tool if there is no such GPU")
    if found.kept_back:
        yield passed("gpu", f"{found.kept_back} more, kept from jobs (loopback.gpus, CUDA_VISIBLE_DEVICES)")
    elif not found.gpus and not found.problems:
        yield passed("gpu", "none found on this computer; trainings that need one are run elsewhere")


def tool_results(settings: Settings) -> Iterator[CheckResult]:
    for tool, lacking in (("ssh", "`stationmaster ssh` cannot open shells"), ("rsync", "large transfers use SFTP")):
        found = shutil.which(tool)
        if found:
            yield passed(tool, found)
        elif tool == "rsync" and settings.transfer.way == "rsync":
            yield failed(tool, "not found, but transfer.way is rsync", "install rsync, or set transfer.way to auto")
        else:
            yield warned(tool, f"not found: {lacking}", f"install {'the OpenSSH client' if tool == 'ssh' else tool}")


def demo_result() -> CheckResult:
    if find_spec("numpy") is not None:
        return passed("demo", "NumPy is installed")
    return warned("demo", "NumPy is not installed: the demo cannot run", "pip install 'stationmaster[demo]'")
