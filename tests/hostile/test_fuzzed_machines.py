"""Whatever a machine answers, a visit ends with a decision that can be stored, and nothing grows past its limit.

The answers are honest ones with parts exchanged for anything that JSON can hold, and anything that JSON can hold.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stationmaster.control.flow.policy import Policy
from stationmaster.control.results.declared_files import checkpoint_of, declared, left_out_events, refused_events
from stationmaster.control.states.executing import handler as executing
from stationmaster.control.states.executing.status_intake import ExecutingView
from stationmaster.control.states.executing.thinning import LIMITS, thinned
from stationmaster.control.states.fetching.wanted_files import ranked_models, steady_files, wanted_files, within_cap
from stationmaster.errors import RemoteError, TransferFailed
from stationmaster.model import Checkpoint, Job, State, StepReading
from stationmaster.model.intake_limits import JOB_EVENTS, KNOWN_STREAMS, MIB, OUTPUT_FILES, VERB_BYTES
from stationmaster.recipes.schema import Output, OutputKind
from stationmaster.remote.base import Completed
from stationmaster.remote.fake import FakeRemote
from stationmaster.remote.host import Host
from stationmaster.remote.status import Since, Status
from stationmaster.series.schema import TABLES
from stationmaster.store.engine import Database
from stationmaster.store.leases import Lease
from stationmaster.store.store import Store
from stationmaster.store.writes import NewEvent, Write
from tests.support.jobs.spine_values import MACHINE, job, spec, visit

SEEDED = settings(derandomize=True, deadline=None)
EXAMPLES = pytest.mark.parametrize("examples", [50, pytest.param(2000, marks=pytest.mark.slow)])
POLICY = Policy()
OUTPUTS = (Output(pattern="output/*.safetensors", kind=OutputKind.CHECKPOINT, step=r"(\d+)"),)
SHA256 = "ab" * 32
HUGE = [0, -1, 1, 2**31, 2**53, 2**63, 2**64, -(2**63), 10**400, 1e308, -1e308, 5e-324, 0.5]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(HUGE) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=8,
)
texts = st.sampled_from(
    [b"", b"step 5/10 loss=0.5\n", b"100%|#| 3/3 [00:01<00:00,  1.0it/s]\r", b"\x00\xff\xfe", b"\n" * 50,
     b"Traceback (most recent call last):\n", b"loss: nan\n", b"{'loss': 1e999}\n", "\u202e\ud7ff\n".encode()]
) | st.binary(max_size=200)  # fmt: skip


@st.composite
def log_pieces(draw: st.DrawFn) -> dict[str, Any]:
    data = draw(texts)
    times = draw(st.lists(st.tuples(st.integers(0, 300), st.floats(-1e12, 1e12)), max_size=4))
    return {
        "stream": draw(st.sampled_from(["0.1", "1.1", "12.3"])), "inode": 1, "start": 0,
        "end": len(data) + draw(st.integers(0, 9)), "data": base64.b64encode(data).decode(), "times": times,
    }  # fmt: skip


@st.composite
def tables(draw: st.DrawFn) -> dict[str, Any]:
    name = draw(st.sampled_from(sorted(TABLES)))
    rows = draw(st.integers(0, 3))
    columns = {column: draw(st.lists(json_values, min_size=rows, max_size=rows)) for column in TABLES[name]}
    return {"table": name, "columns": columns, "last": draw(st.sampled_from(HUGE))}


HONEST: dict[str, Any] = {
    "format": 1, "version": "1", "wall": 1731.2, "monotonic": 55.1, "boot_id": "b", "started": True,
    "supervisor": {"alive": True, "pid": 7},
    "steps": [{"index": 0, "name": "train", "training": True, "state": "running", "try": 1, "started_at": 1.0}],
    "finished": None, "training_alive": True, "needs_secrets": [], "heartbeat": 1731.0, "more": False,
    "outputs": [{"path": "output/a-5.safetensors", "kind": "checkpoint", "size": 9, "mtime": 1.0, "sha256": SHA256}],
    "gpu": [{"index": 0, "name": "X", "memory_used_mib": 1, "memory_total_mib": 2, "utilization_percent": 3}],
    "memory": {"total_bytes": 4, "available_bytes": 1}, "disk": {"total_bytes": 10, "free_bytes": 5},
    "health": {"ok": False, "wall": 3.0, "failure": "exit", "exit_code": 1, "tail": "x"},
}  # fmt: skip


@st.composite
def statuses(draw: st.DrawFn) -> dict[str, Any]:
    """An honest status with log and series, and some of its parts, on any level, exchanged."""
    value: dict[str, Any] = json.loads(json.dumps(HONEST))
    value["log"] = draw(st.lists(log_pieces(), max_size=3))
    value["series"] = draw(st.lists(tables(), max_size=2))
    for _ in range(draw(st.integers(0, 3))):
        _exchange(draw, value)
    return value


def _exchange(draw: st.DrawFn, value: Any) -> None:
    while isinstance(value, dict | list) and value:
        key = draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value))))
        if not isinstance(value[key], dict | list) or draw(st.booleans()):
            value[key] = draw(json_values)
            return
        value = value[key]


def host_answering(answer: object) -> Host:
    remote = FakeRemote()
    remote.on("python3", lambda call: Completed(exit_status=0, stdout=json.dumps(answer).encode()))
    return Host(remote, root="/job")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    database = Database(f"sqlite:///{tmp_path_factory.mktemp('store') / 'stationmaster.db'}")
    yield Store(database)
    database.close()


@pytest.fixture(scope="module")
def lease(store: Store) -> list[Lease]:
    """The lease on an executing job, in a box: every write replaces it."""
    store.jobs.submit(spec("job"))
    (lease,) = store.leases.claim("fuzz", limit=1, seconds=3600.0)
    return [lease]


@EXAMPLES
def test_any_status_leads_to_a_decision_that_the_store_takes(store: Store, lease: list[Lease], examples: int) -> None:
    executing_job = job(state=State.EXECUTING, state_since=90.0, machine=MACHINE, attempt=1)
    unknown = ExecutingView(visit=visit(executing_job), status=None, problem="false", outputs=OUTPUTS)

    @settings(SEEDED, max_examples=examples)
    @given(answer=statuses() | st.dictionaries(st.text(), json_values))
    def decide_and_store(answer: dict[str, Any]) -> None:
        status = _status(answer)
        view = replace(unknown, is_false=True) if status is None else replace(unknown, status=status)
        step = executing.decide(view, POLICY)
        assert step.write is not None
        _store(store, lease, step.write)
        _require_limits(step.write.job)

    decide_and_store()


def _status(answer: dict[str, Any]) -> Status | None:
    try:
        return asyncio.run(host_answering(answer).status())
    except RemoteError:
        return None


def _store(store: Store, lease: list[Lease], write: Write) -> None:
    """Under the job's own identity: a job of another id was never submitted."""
    lease[0] = store.leases.record(lease[0], replace(write, job=replace(write.job, spec=lease[0].job.spec)))


def _require_limits(after: Job) -> None:
    assert len(Since.from_json(after.watching.since).log) <= KNOWN_STREAMS
    assert len(after.watching.outputs or {}) <= OUTPUT_FILES
    assert len(json.dumps(after.watching.since)) < VERB_BYTES["status"]


inventories = (
    st.lists(
        st.fixed_dictionaries({"path": st.sampled_from(["output/a-1.safetensors", "output/b.safetensors", "../x"]),
                               "size": st.sampled_from([0, 1, 10**6, 2**52]), "mtime": st.floats(-1e12, 1e12),
                               "kind": st.sampled_from(["checkpoint", "sample", "\x00"]),
                               "sha256": st.sampled_from([None, SHA256])})
        | json_values,
        max_size=6,
    )
    | json_values
)  # fmt: skip


@EXAMPLES
def test_any_inventory_leads_to_files_that_may_be_downloaded_or_to_a_refusal(examples: int) -> None:
    @settings(SEEDED, max_examples=examples)
    @given(listed=inventories)
    def choose(listed: object) -> None:
        try:
            inventory = asyncio.run(host_answering({"outputs": listed, "left_out": 0}).inventory())
        except RemoteError:
            return
        files = declared(inventory.files, OUTPUTS)
        with suppress(TransferFailed):
            steady = steady_files(files)
            rows = tuple(checkpoint_of(job(), file, OUTPUTS) for file in steady)
            chosen, _ = within_cap(wanted_files(steady, job(), rows), cap_bytes=MIB)
            assert sum(file.size for file in chosen) <= MIB
            assert len(ranked_models(steady, job(), rows)) <= OUTPUT_FILES
        noted = len(refused_events(inventory.files, OUTPUTS)) + len(left_out_events(inventory.left_out, cap_bytes=1))
        assert noted <= 2
        assert not any(".." in file.path for file in files)

    choose()


@EXAMPLES
def test_however_much_a_machine_makes_a_job_record_the_rows_stay_below_their_limits(examples: int) -> None:
    flood = _flood(job(), 3 * JOB_EVENTS)

    @settings(SEEDED, max_examples=examples)
    @given(visits=st.lists(st.tuples(st.integers(0, 3 * JOB_EVENTS), st.integers(0, 50), st.booleans()), max_size=40))
    def record(visits: list[tuple[int, int, bool]]) -> None:
        known, recorded, notes = job(), dict.fromkeys(LIMITS, 0), []
        for many, few, is_flood in visits:
            write = thinned(_first_rows(flood, known, many if is_flood else few))
            known = write.job
            notes += [event.payload["what"] for event in write.events if event.kind == "thinned"]
            recorded["readings"] += len(write.readings)
            recorded["events"] += sum(event.kind != "thinned" for event in write.events)
            recorded["checkpoints"] += len(write.checkpoints)
        assert all(recorded[kind] <= LIMITS[kind] for kind in LIMITS)
        assert len(notes) == len(set(notes)), "a kind is noted once"

    record()


def test_a_flood_is_thinned_evenly_and_its_end_is_kept() -> None:
    known = job()
    limit = LIMITS["readings"] // 32
    numbered = tuple(StepReading(attempt=1, at=1.0, step=step) for step in range(2 * limit))
    write = thinned(Write(job=known, readings=numbered))
    assert len(write.readings) == limit
    assert write.readings[-1].step == 2 * limit - 1
    assert {later.step - earlier.step for earlier, later in zip(write.readings, write.readings[1:], strict=False)} == {
        2
    }
    quiet = thinned(_flood(known, 20))
    assert (len(quiet.readings), len(quiet.events), len(quiet.checkpoints)) == (20, 20, 20)


def test_the_limits_are_those_of_the_job_and_not_of_each_attempt() -> None:
    known = thinned(_flood(job(), 10 * JOB_EVENTS)).job
    again = thinned(_flood(known.next_attempt(), 10 * JOB_EVENTS))
    assert again.job.watching.recorded["events"] > known.watching.recorded["events"]
    assert len(again.events) < known.watching.recorded["events"]
    assert [event for event in again.events if event.kind == "thinned"] == []


def _flood(known: Job, rows: int) -> Write:
    """The same rows again and again: only how many there are counts."""
    return Write(
        job=known,
        readings=(StepReading(attempt=1, at=1.0, step=1),) * rows,
        events=(NewEvent(kind="step"),) * rows,
        checkpoints=(Checkpoint(attempt=1, path="1", kind="checkpoint", size=1),) * rows,
    )


def _first_rows(flood: Write, known: Job, rows: int) -> Write:
    return Write(
        job=known,
        readings=flood.readings[:rows],
        events=flood.events[:rows],
        checkpoints=flood.checkpoints[:rows],
    )
