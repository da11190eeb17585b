"""Which checkpoint of a running training is brought home, and which are kept there."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.control.flow.kept_checkpoints import best_first, checkpoint_note
from stationmaster.control.results.checkpoint_collection import (
    checkpoints_to_keep,
    next_collection,
    with_locations,
    with_newest_wanted,
)
from stationmaster.model import Checkpoint, Collected, Collection, Job, OutputFile, State, Watching
from stationmaster.remote.status import Status, Supervisor
from tests.support.jobs.spine_values import job
from tests.support.policies import changed

POLICY = changed(artifacts={"every": 600.0})
FILE = OutputFile(path="output/a_000000100.safetensors", kind="checkpoint", size=10, mtime=900.0)
ONE = Collected(
    attempt=1, path=FILE.path, size=10, mtime=900.0, sha256="a" * 64, location="/h/a", verified_at=1.0, step=100
)


def running(*collected: Collected, collected_at: float | None = None) -> Job:
    watching = Watching(outputs={FILE.path: (FILE.size, FILE.mtime)})
    collection = Collection(checkpoints=collected, at=collected_at)
    return job(state=State.EXECUTING, state_since=0.0, watching=watching, collection=collection)


def status(*files: OutputFile, wall: float = 1000.0) -> Status:
    supervisor = Supervisor(alive=True, pid=1)
    return Status(wall=wall, monotonic=0.0, boot_id="b", started=True, supervisor=supervisor, outputs=files)


def chosen(before: Job, *files: OutputFile, now: float = 700.0, wall: float = 1000.0) -> OutputFile | None:
    found = next_collection(before, status(*files, wall=wall), before=before, policy=POLICY, now=now)
    return None if found is None else found.file


def test_a_settled_checkpoint_is_collected_when_its_time_has_come() -> None:
    assert chosen(running(), FILE) == FILE
    assert chosen(running(), FILE, now=599.0) is None
    assert chosen(running(collected_at=200.0), FILE) is None
    never = changed(POLICY, artifacts={"every": 0.0})
    assert next_collection(running(), status(FILE), before=running(), policy=never, now=9e9) is None


@pytest.mark.parametrize(
    "file",
    [
        replace(FILE, size=11),
        replace(FILE, mtime=901.0),
        replace(FILE, path="output/never_seen.safetensors"),
        replace(FILE, kind="sample"),
    ],
)
def test_what_changed_since_the_last_look_is_left_alone(file: OutputFile) -> None:
    assert chosen(running(), file) is None


def test_the_checkpoint_that_a_person_asked_for_is_waited_for_and_comes_before_its_time() -> None:
    asked = with_newest_wanted(running(collected_at=690.0), now=700.0)
    written = replace(FILE, path="output/asked.safetensors", mtime=FILE.mtime + 99.0)  # a moment ago
    assert chosen(asked, FILE, written, now=701.0) is None, "the older one is not what was asked for"
    outputs = {FILE.path: (FILE.size, FILE.mtime), written.path: (written.size, written.mtime)}
    seen = replace(asked, watching=Watching(outputs=outputs))
    assert chosen(seen, FILE, written, now=704.0, wall=1003.0) == written
    assert chosen(asked, FILE, written, now=731.0) == FILE, "a trainer that writes all the time keeps nothing from home"
    assert chosen(running(collected_at=690.0), FILE, now=701.0) is None


STATE = replace(FILE, path="output/optimizer.pt", kind="state", mtime=FILE.mtime + 1.0)


@pytest.mark.parametrize(
    ("others", "goes_along"),
    [
        ((STATE,), True),
        ((), False),
        ((replace(STATE, mtime=FILE.mtime - 1.0),), False),  # of the checkpoint before
        ((replace(STATE, mtime=999.5),), False),  # still being written
        ((replace(STATE, size=0),), False),
        ((STATE, replace(FILE, path="output/later.safetensors", mtime=FILE.mtime + 0.5)), False),  # of that one
    ],
)
def test_the_trainer_s_state_goes_along_with_the_checkpoint_that_it_belongs_to(
    others: tuple[OutputFile, ...], goes_along: bool
) -> None:
    found = next_collection(running(), status(FILE, *others), before=running(), policy=POLICY, now=700.0)
    assert found is not None
    assert found.state == (STATE if goes_along else None)


def test_two_looks_in_one_moment_do_not_make_a_file_settled() -> None:
    assert chosen(running(), FILE, wall=FILE.mtime + 1.0) is None
    assert chosen(running(), FILE, wall=FILE.mtime + 2.0) == FILE
    assert chosen(running(), FILE, wall=FILE.mtime - 3600.0) == FILE


def test_what_is_at_home_is_not_collected_again_unless_it_is_another_attempt_s() -> None:
    assert chosen(running(ONE), FILE) is None
    assert chosen(running(replace(ONE, attempt=0)), FILE) == FILE


COLLECTED = st.lists(
    st.builds(
        lambda step, nan, at: replace(ONE, step=step, has_nan=nan, verified_at=at, location=f"/h/{at}"),
        st.none() | st.integers(0, 1000),
        st.booleans(),
        st.floats(0, 1e6),
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda one: one.location,
)


@given(found=COLLECTED, keep=st.integers(1, 5))
def test_best_and_latest_are_always_kept_and_no_more_than_asked_beside_them(found: list[Collected], keep: int) -> None:
    stay = checkpoints_to_keep(found, keep=keep)
    assert found[-1] in stay
    assert all(best in stay for best in best_first(found)[:1])
    assert len(stay) <= max(keep, 2)
    assert stay == [one for one in found if one in stay]


@given(found=COLLECTED)
def test_a_checkpoint_with_nan_is_never_gone_on_from(found: list[Collected]) -> None:
    assert not any(one.has_nan for one in best_first(found))


def test_a_lost_machine_s_explanation_names_what_is_at_home() -> None:
    assert checkpoint_note(running()) == ""
    assert checkpoint_note(running(ONE)) == "; the checkpoint of step 100 is saved locally"
    assert checkpoint_note(running(replace(ONE, step=None))) == "; the checkpoint is saved locally"


def test_an_inventory_does_not_forget_where_the_same_bytes_lie() -> None:
    before = running(ONE)
    same = Checkpoint(attempt=1, path=ONE.path, kind="checkpoint", size=10, sha256=ONE.sha256)
    other = replace(same, sha256="b" * 64)
    assert [one.location for one in with_locations([same, other], before)] == ["/h/a", None]
