"""Samples beside a training until its standard input ends: `beside.py DATABASE PID recorder|nvidia-smi`.

`recorder` is what trackside runs. `nvidia-smi` samples as often, but reads the GPUs with that program only, as on a
machine without NVML.
"""

from __future__ import annotations

import os
import select
import sys
import time
from pathlib import Path
from typing import Any

from trackside.metrics.database import open_database
from trackside.metrics.fold import finish_journal, sample_record
from trackside.metrics.journal import Journal
from trackside.metrics.locations import journal_folder
from trackside.recorder.recorder import RecordedTry, Recorder, TryEnd
from trackside.sampler.gpus import Gpus
from trackside.sampler.sampler import Sampler

_SAMPLE_SECONDS = 5.0
_LOOK_SECONDS = 1.0


def main(database: str, pid: str, source: str) -> None:
    if source == "recorder":
        _record(database, int(pid))
    else:
        _sample_with_nvidia_smi(database, int(pid))
    usage = os.times()
    print(
        f"{source}: {usage.user + usage.system + usage.children_user + usage.children_system:.2f} s CPU",
        file=sys.stderr,
    )


def _record(database: str, pid: int) -> None:
    folder = Path(database).parent
    log = folder / "log.txt"
    log.touch()
    recorder = Recorder(
        RecordedTry(
            job="throughput", database=database, folder=str(folder), log=str(log), stream="log", started=time.time(),
            interval_seconds=_SAMPLE_SECONDS, per_process=True, newest_sample=str(folder / "newest.json"),
        ),
        moment=time.monotonic(), note=_note,
    )  # fmt: skip
    while not _is_over(_LOOK_SECONDS):
        recorder.look(wall=time.time(), moment=time.monotonic(), pid=pid)
    recorder.finish(TryEnd(time.time(), 0, None), wall=time.time(), moment=time.monotonic())


def _sample_with_nvidia_smi(database: str, pid: int) -> None:
    gpus = Gpus(quick=False, now=time.monotonic, note=_note, load_nvml=_no_library)
    sampler = Sampler(pid, folder=str(Path(database).parent), note=_note, gpus=gpus)
    journal = Journal(journal_folder(database), "throughput")
    while not _is_over(_SAMPLE_SECONDS):
        journal.append(sample_record(sampler.take(time.time())))
    connection = open_database(database)
    finish_journal(connection, journal, snapshot=lambda: None)
    connection.close()
    sampler.close()


def _is_over(seconds: float) -> bool:
    return bool(select.select([sys.stdin], [], [], seconds)[0])


def _no_library() -> Any:
    raise OSError("not used here")


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
