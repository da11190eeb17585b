"""A machine that floods its log slows down nobody else's training, and its own is still watched."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from stationmaster.control.flow.world import World
from stationmaster.control.states.executing.log_watch import ReadLog, read_log
from stationmaster.control.worker.worker import Worker
from stationmaster.model import Job, Label, LocalAccess, Rental, RentalState, RentedMachine, State
from stationmaster.parsers.budget import Budget
from stationmaster.parsers.reader import LogReader
from stationmaster.providers.fake import FakeProvider
from stationmaster.recipes.registry import find
from stationmaster.remote.base import Completed, Remote
from stationmaster.remote.status import LogPiece, Status, StepStatus
from stationmaster.settings import MonitoringSettings
from stationmaster.store.engine import Database
from stationmaster.store.leases import Lease
from stationmaster.store.store import Store
from stationmaster.store.writes import Write
from tests.support.asynchronous_tests import asynchronous, until
from tests.support.jobs.spine_values import job, spec
from tests.support.policies import changed

RECIPE = "tiny-lora@1"
HONEST = [f"honest-{number}" for number in range(6)]
FLOODING = "flooding"
MEBIBYTE = 2**20
PACE = {"lease": 60.0, "renew": 0.2, "look": 0.05, "sweep": 300.0, "slots": 16}
FLOODS = {
    "two bytes": b"y\n" * (MEBIBYTE // 2),
    "losses": b"loss: 1\n" * (MEBIBYTE // 8),
    "tracebacks": b"Traceback (most recent call last):\n" * (MEBIBYTE // 35),
    "dicts": b"{'loss': 1, 'epoch': 2}\n" * (MEBIBYTE // 24),
    "a traceback without an end": b"Traceback (most recent call last):\n" + b"  y\n" * (MEBIBYTE // 4),
    "a table without an end": b"epoch  train_loss  time\n" + b"y\n" * (MEBIBYTE // 2),
    "redraws": b"y\r" * (MEBIBYTE // 2),
}

_LAST_LINE = b"\nStep 7/9: loss=0.25\n"


class HeldThread(ThreadPoolExecutor):
    """The thread for long readings; what it is given waits until it is let go."""

    def __init__(self) -> None:
        super().__init__(1, "reading")
        self.given = 0
        self._may_go = threading.Event()

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.given += 1

        def held() -> Any:
            self._may_go.wait()
            return function(*args, **kwargs)

        return super().submit(held)

    def let_go(self) -> None:
        self._may_go.set()


class Machines:
    """Answers for all machines: a few redraws from the honest ones, a full answer with `more` from the flooding one."""

    def __init__(self, flood: Sequence[bytes] = (FLOODS["two bytes"], FLOODS["losses"])) -> None:
        self.asked: Counter[str] = Counter()
        self._flood = [base64.b64encode(text).decode() for text in flood]

    def connect(self, access: Any) -> Remote:
        return cast(Remote, _Machine(access.root.rpartition("/")[2], self))

    def answer(self, name: str, since: dict[str, Any]) -> dict[str, Any]:
        start = int(since["log"].get("0.1", {"offset": 0})["offset"])
        step = self.asked[name] = self.asked[name] + 1
        is_flooding = name == FLOODING
        bar = f"\rjob:  1%|#    | {step}/9000 [00:10<99:00,  1.00s/it, lr: 1.0e-04 loss: 3.1e-01]".encode()
        data = self._flood[step % len(self._flood)] if is_flooding else base64.b64encode(bar).decode()
        piece = {"stream": "0.1", "inode": 3, "start": start, "end": start + len(data), "data": data, "times": []}
        train = {"index": 0, "name": "train", "training": True, "state": "running", "try": 1, "exit_known": True}
        clocks = {"wall": time.time(), "monotonic": time.monotonic(), "boot_id": "boot", "heartbeat": time.time()}
        running = {"started": True, "supervisor": {"alive": True, "pid": 7}, "training_alive": True}
        steps = [{**train, "started_at": 2.0}]
        return {"format": 1, **clocks, **running, "steps": steps, "log": [piece], "more": is_flooding, "outputs": []}


class _Machine:
    def __init__(self, name: str, machines: Machines) -> None:
        self._name, self._machines = name, machines

    async def run(self, argv: Sequence[str], **_options: Any) -> Completed:
        assert argv[4] == "status", argv
        since = json.loads(argv[argv.index("--since") + 1])
        return Completed(exit_status=0, stdout=json.dumps(self._machines.answer(self._name, since)).encode())

    async def close(self) -> None:
        """Do nothing: nothing is open."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(Database(f"sqlite:///{tmp_path}/store.db"))
    for name in (*HONEST, FLOODING):
        opened.jobs.submit(spec(name, recipe=RECIPE))
    for lease in opened.leases.claim("set-up", limit=100, seconds=600.0):
        opened.leases.settle(lease, _training(lease, opened.installation_id))
    yield opened
    opened.close()


def _training(lease: Lease, installation: str) -> Write:
    label = str(Label(installation=installation, job=lease.job.id, attempt=1))
    access = LocalAccess(root=f"/fake/{lease.job.id}", job_root="/fake/jobs")
    training = replace(lease.job, state=State.EXECUTING, state_since=lease.now, attempt=1)
    rental = Rental(
        label=label,
        job_id=training.id,
        attempt=1,
        provider="fake",
        state=RentalState.HELD,
        provider_id=training.id,
        account="fake-account",
        create_sent_at=lease.now,
        held_at=lease.now,
    )
    machine = RentedMachine(label=label, access=access)
    return Write(job=replace(training, machine=machine), rentals=(rental,), due_in=0.0)


@asynccontextmanager
async def working(store: Store, home: Path, machines: Machines, reading: ThreadPoolExecutor) -> AsyncIterator[None]:
    recipe = find(RECIPE)
    world = World(
        store=store,
        providers={"fake": FakeProvider()},
        connect=machines.connect,
        find_recipe=lambda _reference: recipe,
        secrets=lambda _name: None,
        home=home,
        trackside=home / "trackside.pyz",
        policy=changed(worker=PACE, monitoring={"poll_interval": 0.2, "watch_interval": 0.1}),
        reading_thread=reading,
    )
    worker = Worker(world)
    work = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.leave()
        await work
        await world.close()


@asynchronous
async def test_honest_jobs_beside_one_that_floods_its_log_are_visited_on_time(store: Store, tmp_path: Path) -> None:
    """While the flood is read, which takes for ever here, every other job is visited again and again."""
    machines, reading = Machines(), HeldThread()
    async with working(store, tmp_path, machines, reading):
        await until(lambda: reading.given == 1, what="the flood being read")
        before, held_until = Counter(machines.asked), store.jobs.get(FLOODING).lease_until or 0.0
        await until(
            lambda: all(machines.asked[name] >= before[name] + 3 for name in HONEST), what="three more visits to each"
        )
        assert reading.given == 1  # honest visits are short: nothing of theirs waits for that thread
        assert machines.asked[FLOODING] == 1
        assert (store.jobs.get(FLOODING).lease_until or 0.0) > held_until, "its lease is not renewed meanwhile"
        reading.let_go()
        await until(lambda: machines.asked[FLOODING] >= 3, what="the flood being read further")
    assert store.jobs.get(FLOODING).progress.loss == 1.0
    assert all(store.jobs.get(name).state is State.EXECUTING for name in (*HONEST, FLOODING))


@asynchronous
async def test_a_flood_without_an_end_leaves_every_honest_job_its_visits(store: Store, tmp_path: Path) -> None:
    """With the real thread, and one note about the flood."""
    machines = Machines()
    async with working(store, tmp_path, machines, ThreadPoolExecutor(1, "reading")):
        await until(lambda: machines.asked[FLOODING] >= 3, what="three floods read")
        await until(lambda: all(machines.asked[name] >= 3 for name in HONEST), what="three visits to each other job")
    events = [event.kind for event in store.events.of_job(FLOODING)]
    assert events.count("log_thinned") == 1


def _look(watched: Job, data: bytes, times: tuple[tuple[int, float], ...] = ()) -> ReadLog:
    train = StepStatus(index=0, name="train", state="running", training=True, try_number=1, started_at=0.0)
    piece = LogPiece(stream="0.1", inode=1, start=0, end=len(data), data=data, times=times)
    status = Status(
        wall=9.0, monotonic=9.0, boot_id="b", started=True, steps=(train,), log=(piece,), training_alive=True
    )
    return read_log(watched, status, framework="auto", monitoring=MonitoringSettings(), now=1009.0)


@pytest.mark.parametrize("name", FLOODS)
def test_of_a_flood_only_so_many_lines_and_its_end_are_read(name: str) -> None:
    budget = Budget()
    readings = LogReader().feed(FLOODS[name] + _LAST_LINE, budget=budget)
    assert budget.pieces > -8_192  # of the rest its last few kilobytes are read
    assert (readings[-1].step, readings[-1].loss) == (7, 0.25)


def test_the_end_of_a_flood_is_the_progress_of_its_job() -> None:
    seen = _look(job(state=State.EXECUTING), FLOODS["losses"] + _LAST_LINE)
    assert (seen.progress.step, seen.progress.loss) == (7, 0.25)


def test_errors_and_checkpoints_are_found_in_what_is_not_read() -> None:
    flood = FLOODS["losses"][: MEBIBYTE // 2 // 8 * 8]
    middle = b"saved checkpoint to out/cat.safetensors\nRuntimeError: CUDA error: device-side assert triggered\n"
    seen = _look(job(state=State.EXECUTING), flood + middle + flood)
    assert seen.is_thinned
    assert [reading.checkpoint for reading in seen.log_readings if reading.checkpoint] == ["out/cat.safetensors"]
    assert [reading.error.kind for reading in seen.log_readings if reading.error] == ["cuda"]


def test_more_marks_of_time_than_an_honest_machine_has_are_thinned() -> None:
    data = b"y\n" * 50_000
    seen = _look(job(state=State.EXECUTING), data, tuple((place, 1.0) for place in range(1, 100_000)))
    assert not seen.log_readings


def test_an_honest_mebibyte_is_read_whole() -> None:
    lines = b"".join(
        b"{'loss': %.4f, 'grad_norm': 1.25, 'learning_rate': 9.1e-05, 'epoch': %.4f, 'step': %d}\n"
        % (1 / step, step / 900, step)
        for step in range(1, 12_000)
    )
    seen = _look(job(state=State.EXECUTING), lines)
    assert not seen.is_thinned
    assert len(seen.readings) == 11_999
