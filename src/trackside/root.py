"""The paths under a job's root."""

from __future__ import annotations

import os

from trackside.errors import Misuse


class TryFolder:
    """The files of one try of one step."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.started = os.path.join(path, "started")
        self.process = os.path.join(path, "process.json")
        self.log = os.path.join(path, "log")
        self.time_marks = os.path.join(path, "times")
        self.stopping = os.path.join(path, "stopping.json")
        self.exit = os.path.join(path, "exit.json")
        self.verdict = os.path.join(path, "verdict.json")
        self.container = os.path.join(path, "container.json")
        self.source = os.path.join(path, "source.json")


CLEANUP = "cleanup"
ADOPTED = "adopted"  # a link to the output folder of a training that somebody else started


class Root:
    """The job's folder on the machine and the names in it.

    The cleanup is a part with its own folder, so that its steps are run, reported and found again like the job's.
    """

    def __init__(self, path: str, *, part: str = "") -> None:
        if part not in ("", CLEANUP):
            raise Misuse("unknown part: %r" % part)
        self.path = os.path.realpath(path)
        self.part = part
        self.plan = os.path.join(self.path, "plan.json")
        self.own = os.path.join(self.path, ".trackside", part) if part else os.path.join(self.path, ".trackside")
        self.supervisor_lock = os.path.join(self.own, "supervisor.lock")
        self.supervisor_log = os.path.join(self.own, "supervisor.log")
        self.recorder_lock = os.path.join(self.own, "recorder.lock")
        self.newest_sample = os.path.join(self.own, "newest_sample.json")
        self.state = os.path.join(self.own, "state.json")
        self.latest = os.path.join(self.own, "latest.json")
        self.training_pid = os.path.join(self.own, "training.pid")
        self.stop = os.path.join(self.own, "stop.json")
        self.save = os.path.join(self.own, "save.json")
        self.sample = os.path.join(self.own, "sample.json")
        self.health = os.path.join(self.own, "health.json")
        self.health_log = os.path.join(self.own, "health.log")
        self.gpu = os.path.join(self.own, "gpu.csv")
        self.hashes = os.path.join(self.own, "hashes.json")
        self.unpacked = os.path.join(self.own, "unpacked")
        self.cache = os.path.join(os.path.dirname(self.path), ".cache")  # shared by the jobs of the machine
        self.steps = os.path.join(self.own, "steps")
        self.adopted = os.path.join(self.path, ADOPTED)
        self.adopted_since = os.path.join(self.own, "adopted.json")

    def make_own_folders(self) -> None:
        for folder in (self.own, self.steps, self.unpacked):
            os.makedirs(folder, mode=0o700, exist_ok=True)

    def make_folders(self) -> None:
        self.make_own_folders()
        for name in ("work", "output", "logs"):
            os.makedirs(os.path.join(self.path, name), exist_ok=True)

    def inside(self, relative: str) -> str:
        """Return the full path of something under the root. Raises Misuse for a path that leaves it."""
        if not stays_inside(relative):
            raise Misuse("%r is not a path inside the job's folder" % relative)
        return os.path.join(self.path, relative)

    def try_folder(self, step: int, number: int) -> TryFolder:
        return TryFolder(os.path.join(self.steps, stream_name(step, number)))

    def tries(self) -> list[tuple[int, int]]:
        """Return every (step, try) that was ever started, in order."""
        try:
            names = os.listdir(self.steps)
        except FileNotFoundError:
            return []
        parted = (name.split(".") for name in names)
        return sorted((int(p[0]), int(p[1])) for p in parted if len(p) == 2 and p[0].isdigit() and p[1].isdigit())


def stream_name(step: int, number: int) -> str:
    """Return the name of one try's log, as home and trackside use it."""
    return "%d.%d" % (step, number)


def stays_inside(relative: str) -> bool:
    return bool(relative) and not os.path.isabs(relative) and "\0" not in relative and ".." not in relative.split("/")
