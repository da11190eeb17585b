"""Takes samples of this machine: memory, the training's processes, CPU, GPUs, disk and network."""

from __future__ import annotations

from typing import Callable, TypeVar

from trackside.sampler.memory import read_memory
from trackside.sampler.sample import MemoryReading, Sample

T = TypeVar("T")


class Sampler:
    """Reads every source once per sample. A source that fails is noted once; its values are then None.

    `pid` is the training's first process, `folder` is where it writes. A quick sampler starts no programs.
    """

    def __init__(
        self,
        pid: int | None,
        *,
        folder: str,
        per_process: bool = True,
        quick: bool = False,
        note: Callable[[str], None],
    ) -> None:
        self._pid = pid
        self._folder = folder
        self._per_process = per_process
        self._quick = quick
        self._note = note
        self._noted: set[str] = set()

    def take(self, timestamp: float) -> Sample:
        """Return the sample of this moment. Never raises, and waits 2 s at most."""
        return Sample(timestamp, memory=self._read("memory", read_memory, MemoryReading()))

    def facts(self) -> dict[str, str]:
        """Return what this machine knows for the table RunInfo."""
        return {}

    def close(self) -> None:
        """Release what the sources hold."""

    def _read(self, source: str, read: Callable[[], T], missing: T) -> T:
        try:
            return read()
        except Exception as error:  # noqa: BLE001 - whatever fails here must not disturb the training
            self._note_once("%s cannot be read: %s" % (source, error or type(error).__name__))
            return missing

    def _note_once(self, text: str) -> None:
        if text not in self._noted:
            self._noted.add(text)
            self._note(text)
