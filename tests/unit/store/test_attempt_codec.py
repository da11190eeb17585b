"""How a job's attempt is stored: one flat JSON object, the same as ever, and nothing of it is ever lost."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.model import (
    Cleanup,
    Closing,
    Collected,
    Collection,
    Ending,
    Fetching,
    Funding,
    Heartbeat,
    Job,
    LastSave,
    LocalAccess,
    ModelDelivery,
    ModelFile,
    OutputFile,
    Parked,
    PendingRequest,
    Place,
    Reason,
    RentedMachine,
    Request,
    Requests,
    SavedModel,
    Setbacks,
    ShownSample,
    SshAccess,
    TrainerState,
    Transfer,
    Watching,
)
from stationmaster.money import MicroDollars
from stationmaster.store.attempt_codec import attempt_from_text, attempt_to_json
from stationmaster.store.json_text import dumps
from tests.support.jobs.spine_values import job

PARTS = (
    RentedMachine, Ending, Watching, Collection, Requests, Fetching, SavedModel, Funding, Setbacks,
)  # fmt: skip

# As workers have always written it; the order of keys is theirs.
STORED = """{
  "label": "sm-ab12cd34-job-2",
  "access": {"kind": "ssh", "host": "203.0.113.7", "port": 40022, "user": "root", "job_root": "/workspace/jobs",
    "key_path": "/home/me/.stationmaster/key", "host_keys": ["ssh-ed25519 AAAA"], "use_config": false,
    "unverified": true, "environment": [["PATH", "/opt/bin"]]},
  "gpus": "2 x RTX 4090", "key_attached": true, "login_problem": "not let in", "refused_offers": ["o1", "o2"],
  "waits_for": "job a is first", "absences": 1, "gone_read_at": 17.5, "starts": 2, "started_at": 18.5,
  "starting": "loading",
  "transfer": {"way": "fetching", "bytes": 5, "total": 9, "bytes_per_second": 2.5, "eta_seconds": null},
  "cleanup": {"since": 12.0, "state": "done"}, "fault": "a false size", "unwritable": "the disk is full",
  "ending": "STALLED", "ending_explanation": "it stood still", "save": {"state": "saving", "at": 3.0},
  "stops": 2, "unstopped": true, "closing": {"spent": 1.5, "at": 4.0, "stopped": 0.0},
  "parked": {"at": 5.0, "why": "no time", "seq": 3}, "further": "MACHINE_LOST", "further_explanation": "gone",
  "analysed": true,
  "since": {"log": {"0.1": {"inode": 7, "offset": 90}}, "samples": 0, "rows": 0},
  "reader": {"framework": "auto", "memory": {"errors": []}}, "watch": {"at": 1.0, "recovery": null},
  "signs": {"tail": "", "shapes": {"a": "b"}}, "vitals": {"losses": [[1.0, 5, null]], "gpus": [[[1.0, 97.0, 1, 2]]]},
  "trained": true, "error_step": 1, "anomalies": ["nan_loss"], "spoilt_at": 120, "stalled": true, "sick": true,
  "health_ok": false,
  "compared": 25, "milestone": 50, "epoch_told_at": 100, "steps": {"train": "running.1"},
  "outputs": {"output/a-100.safetensors": [10, 900.5]}, "step_offset": 1000,
  "collected": [{"attempt": 1, "path": "output/a-100.safetensors", "size": 10, "mtime": 900.5, "sha256": "aa",
    "location": "/h/a", "verified_at": 7.0, "step": 100, "has_nan": false, "mirrored": true,
    "state": {"location": "/h/s", "sha256": "bb"}},
    {"attempt": 1, "path": "output/b.safetensors", "size": 11, "mtime": 901.0, "sha256": "cc",
    "location": "/h/b", "verified_at": 8.0, "step": null, "has_nan": true, "mirrored": false, "state": null}],
  "collected_at": 8.5, "collect_failed": true, "collect_newest_until": 38.5,
  "samples_at": 8.7, "newest_sample": [8.6, "output/samples/a.png"], "sample_bytes": 12,
  "asking": {"request": "sample", "number": 2, "at": 9.0, "made_at_step": null, "attempt": 2, "looked_at": 9.5},
  "answered": {"save": 1},
  "wanted": [{"path": "output/m.safetensors", "kind": "checkpoint", "size": 3, "mtime": 2.0, "sha256": "dd"}],
  "spare_models": [{"path": "output/n.safetensors", "kind": "checkpoint", "size": 4, "mtime": 1.0, "sha256": "ee"}],
  "further_checkpoints": [{"path": "output/o.safetensors", "kind": "checkpoint", "size": 4, "mtime": 1.0,
    "sha256": "ee"}],
  "furthest": 400,
  "model": "hf://anna/cats/m.safetensors", "model_step": 400, "model_attempt": 2,
  "model_file": {"name": "m.safetensors", "sha256": "dd", "size": 3, "path": "output/m.safetensors"},
  "delivery": {"attempt": 2, "places": [{"kind": "hub", "address": "hf://anna/cats/m.safetensors",
    "link": "https://hub/anna/cats", "public": true}], "failed": {"bucket": "403"}, "tries": {"bucket": 3},
    "done": ["samples"], "register": true, "samples": [{"url": "a.png", "text": "a cat"}]},
  "hold": 720000, "hard_limit_at": 14400.0, "rate_per_hour": 360000, "paid_until": 7200.0,
  "heartbeats": [{"at": 60.0, "step": "train", "percent": 12.5, "eta_seconds": 420.0}], "failures": 4, "trips": 1,
  "setback": "it did not answer",
  "faults": 2, "recorded": {"readings": 9}, "thinned": ["events"]
}"""

FILE = OutputFile(path="output/m.safetensors", kind="checkpoint", size=3, mtime=2.0, sha256="dd")
COLLECTED = Collected(
    attempt=1, path="output/a-100.safetensors", size=10, mtime=900.5, sha256="aa", location="/h/a", verified_at=7.0,
    step=100, mirrored=True, state=TrainerState(location="/h/s", sha256="bb"),
)  # fmt: skip
OTHER = Collected(
    attempt=1, path="output/b.safetensors", size=11, mtime=901.0, sha256="cc", location="/h/b", verified_at=8.0,
    has_nan=True,
)  # fmt: skip
ACCESS = SshAccess(
    host="203.0.113.7", port=40022, user="root", job_root="/workspace/jobs", key_path="/home/me/.stationmaster/key",
    host_keys=("ssh-ed25519 AAAA",), unverified=True, environment=(("PATH", "/opt/bin"),),
)  # fmt: skip
KNOWN: dict[str, Any] = {
    "machine": RentedMachine(
        label="sm-ab12cd34-job-2",
        access=ACCESS,
        gpus="2 x RTX 4090",
        key_attached=True,
        login_problem="not let in",
        refused_offers=("o1", "o2"),
        waits_for="job a is first",
        absences=1,
        gone_read_at=17.5,
        starts=2,
        started_at=18.5,
        starting="loading",
        transfer=Transfer(way="fetching", bytes=5, total=9, bytes_per_second=2.5),
        cleanup=Cleanup(since=12.0, state="done"),
        fault="a false size",
        unwritable="the disk is full",
    ),
    "ending": Ending(
        reason=Reason.STALLED,
        explanation="it stood still",
        save=LastSave(state="saving", at=3.0),
        stops=2,
        unstopped=True,
        closing=Closing(spent=1.5, at=4.0),
        parked=Parked(at=5.0, why="no time", seq=3),
        further=Reason.MACHINE_LOST,
        further_explanation="gone",
        analysed=True,
    ),
    "watching": Watching(
        since={"log": {"0.1": {"inode": 7, "offset": 90}}, "samples": 0, "rows": 0},
        reader={"framework": "auto", "memory": {"errors": []}},
        watch={"at": 1.0, "recovery": None},
        signs={"tail": "", "shapes": {"a": "b"}},
        vitals={"losses": [[1.0, 5, None]], "gpus": [[[1.0, 97.0, 1, 2]]]},
        error_step=1,
        anomalies=("nan_loss",),
        trained=True,
        spoilt_at=120,
        stalled=True,
        sick=True,
        health_ok=False,
        compared=25,
        milestone=50,
        recorded={"readings": 9},
        thinned=("events",),
        heartbeats=(Heartbeat(at=60.0, step="train", percent=12.5, eta_seconds=420.0),),
        epoch_event_step=100,
        steps={"train": "running.1"},
        outputs={"output/a-100.safetensors": (10, 900.5)},
        step_offset=1000,
    ),
    "collection": Collection(
        checkpoints=(
            COLLECTED,
            OTHER,
        ),
        at=8.5,
        failed=True,
        newest_until=38.5,
        samples_at=8.7,
        newest_sample=(8.6, "output/samples/a.png"),
        sample_bytes=12,
    ),
    "requests": Requests(
        pending=PendingRequest(request=Request.SAMPLE, number=2, at=9.0, attempt=2, looked_at=9.5), answered={"save": 1}
    ),
    "fetching": Fetching(
        wanted=(FILE,),
        spare_models=(replace(FILE, path="output/n.safetensors", size=4, mtime=1.0, sha256="ee"),),
        further_checkpoints=(replace(FILE, path="output/o.safetensors", size=4, mtime=1.0, sha256="ee"),),
        furthest=400,
    ),
    "model": SavedModel(
        address="hf://anna/cats/m.safetensors",
        step=400,
        attempt=2,
        file=ModelFile(name="m.safetensors", sha256="dd", size=3, path="output/m.safetensors"),
        delivery=ModelDelivery(
            attempt=2,
            places=(
                Place(kind="hub", address="hf://anna/cats/m.safetensors", link="https://hub/anna/cats", public=True),
            ),
            failed={"bucket": "403"},
            tries={"bucket": 3},
            done=("samples",),
            register=True,
            samples=(ShownSample(url="a.png", text="a cat"),),
        ),
    ),
    "funding": Funding(
        hold=MicroDollars(720_000), hard_limit_at=14_400.0, rate_per_hour=MicroDollars(360_000), paid_until=7200.0
    ),
    "setbacks": Setbacks(faults=2, failures=4, problem="it did not answer", internal_errors=1),
}


def stored(looked_at: Job) -> str:
    return dumps(attempt_to_json(looked_at))


def read(text: str) -> Job:
    return job(**attempt_from_text(text))


def test_a_row_of_an_earlier_version_is_read_into_its_parts_and_written_as_it_was() -> None:
    found = attempt_from_text(STORED)
    assert found == {**KNOWN, "unread": {}}
    assert json.loads(stored(job(**KNOWN))) == json.loads(STORED)


def test_the_row_above_has_every_key_that_there_is() -> None:
    keys = [item.metadata.get("key", item.name) for part in PARTS for item in dataclasses.fields(part)]
    assert sorted(keys) == sorted(json.loads(STORED)), "a key that is renamed is one that older rows do not have"


def test_a_job_of_which_nothing_is_known_is_an_empty_object() -> None:
    assert stored(job()) == "{}"
    assert read("{}") == job()


@pytest.mark.parametrize(
    ("row", "same"),
    [
        ('{"wanted": []}', job(fetching=Fetching(wanted=()))),  # all is fetched, which is not: nothing is known
        ('{"failures": 0, "stalled": false, "anomalies": [], "save": null}', job()),
        ('{"cleanup": {"since": 1.0}}', job(machine=RentedMachine(cleanup=Cleanup(since=1.0)))),
        ('{"closing": {"spent": 1.0, "at": 2.0}}', job(ending=Ending(closing=Closing(spent=1.0, at=2.0)))),
        ('{"delivery": {"attempt": 1}}', job(model=SavedModel(delivery=ModelDelivery(attempt=1)))),
        ('{"ending": "SOLD"}', job(ending=Ending(reason=Reason("SOLD")))),
        (
            '{"access": {"kind": "local", "root": "/m", "job_root": "/m/j"}}',
            job(machine=RentedMachine(access=LocalAccess(root="/m", job_root="/m/j"))),
        ),
    ],
)
def test_what_older_rows_leave_out_or_spell_out_is_understood(row: str, same: Job) -> None:
    assert read(row) == same
    assert read(stored(same)) == same


@pytest.mark.parametrize(
    "row",
    [
        '{"cleanup": {"since": 1.0}}',
        '{"delivery": {"attempt": 1, "done": ["catalogued"], "register": false}}',
        '{"delivery": {"attempt": 1, "tries": {"hub": 1}}}',
        '{"health_ok": true, "steps": {}, "outputs": {}}',
    ],
)
def test_what_is_noted_bit_by_bit_is_stored_as_far_as_it_is_known(row: str) -> None:
    assert json.loads(stored(read(row))) == json.loads(row)


def test_what_newer_code_wrote_is_written_back() -> None:
    newer = '{"failures": 1, "mood": {"of": ["the", null, 1.5]}}'
    assert read(newer).unread == {"mood": {"of": ["the", None, 1.5]}}
    assert json.loads(stored(replace(read(newer), setbacks=Setbacks()))) == {"mood": {"of": ["the", None, 1.5]}}


def test_a_key_of_newer_code_inside_a_value_does_not_keep_the_value_from_being_read() -> None:
    assert read('{"closing": {"spent": 1.0, "at": 2.0, "hurried": 3}}').ending.closing == Closing(spent=1.0, at=2.0)


@pytest.mark.parametrize("spoilt", ["7", "true", '"x"', "[1]", '{"a": 1}', '{"kind": "carrier pigeon"}', "null"])
@pytest.mark.parametrize("key", sorted(json.loads(STORED)))
def test_a_value_that_cannot_be_read_spoils_no_other_and_is_not_lost(key: str, spoilt: str) -> None:
    row = {**json.loads(STORED), key: json.loads(spoilt)}
    found = read(json.dumps(row))
    part = next(part for part in KNOWN if key in attempt_to_json(job(**{part: KNOWN[part]})))
    assert all(getattr(found, other) == KNOWN[other] for other in KNOWN if other != part)
    kept = json.loads(stored(found)).get(key)
    assert kept == row[key] or key not in found.unread, "only what was understood is written in another way"


def test_a_value_that_could_not_be_read_gives_way_to_a_new_one() -> None:
    spoilt = read('{"access": 7, "label": "l"}')
    assert (spoilt.machine, spoilt.unread) == (RentedMachine(label="l"), {"access": 7})
    access = LocalAccess(root="/m", job_root="/m/j")
    again = read(stored(replace(spoilt, machine=replace(spoilt.machine, access=access))))
    assert (again.machine.access, again.unread) == (access, {})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)  # fmt: skip
SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=6),
    bool: st.booleans(),
    int: st.integers(-(2**53), 2**53),
    float: st.floats(allow_nan=False, allow_infinity=False),
    Any: JSON,
    MicroDollars: st.integers(0, 2**53),
}


def some(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a type."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is NoneType or hint in SCALARS:
        return SCALARS.get(hint, st.none())
    if origin in (Union, UnionType):
        return st.one_of([some(one) for one in inner])
    if origin is Mapping:
        return st.dictionaries(st.text(max_size=4), some(inner[1]), max_size=3)
    if origin is tuple:
        return st.lists(some(inner[0]), max_size=2).map(tuple) if ... in inner else st.tuples(*map(some, inner))
    if issubclass(hint, Enum):
        return st.sampled_from(list(hint))
    hints = get_type_hints(hint)
    return st.builds(hint, **{item.name: some(hints[item.name]) for item in dataclasses.fields(hint)})


@given(st.fixed_dictionaries({part: some(type(known)) for part, known in KNOWN.items()}))
def test_whatever_is_known_comes_back(parts: dict[str, Any]) -> None:
    assert read(stored(job(**parts))) == job(**parts)
