"""Loaded by every Python process of a measured training: stands in for absent packages, watches the trainer."""

import os
import sys
from pathlib import Path

TRAINERS = {"run.py": "ai_toolkit", "sdxl_train_network.py": "kohya"}


def _trainer() -> str | None:
    """Which trainer this process runs, if any; a launcher runs as a module and names the script only later."""
    script = next((one for one in sys.orig_argv[1:] if not one.startswith("-") or one in ("-m", "-c")), "")
    return TRAINERS.get(Path(script).name)


def _start() -> None:
    import absent_packages  # type: ignore[import-not-found, unused-ignore]

    absent_packages.stand_in_for(os.environ.get("GPU_WATCH_ABSENT", "").split())
    trainer = _trainer()
    report = os.environ.get("GPU_WATCH_REPORT")
    if trainer is None or report is None:
        return
    import watched_memory  # type: ignore[import-not-found, unused-ignore]
    import watched_trainers  # type: ignore[import-not-found, unused-ignore]

    limit = os.environ.get("GPU_WATCH_LIMIT_GIB")
    watched_trainers.watch(trainer, watched_memory.Watch(Path(report), limit_gib=float(limit) if limit else None))


_start()
