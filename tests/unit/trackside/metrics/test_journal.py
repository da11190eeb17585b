"""What was appended to a journal is read back, whole records only, in their order."""

from __future__ import annotations

import math
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trackside.metrics.journal import (
    HEADER_BYTES,
    MARK,
    SEGMENT_BYTES,
    STEP,
    STEP_LAYOUT,
    Journal,
    Record,
    Segment,
    Steps,
    leftover_segments,
)

STEPS_PER_SEGMENT = (SEGMENT_BYTES - HEADER_BYTES) // STEP_LAYOUT.size


def append_step(journal: Journal, step: int, loss: float = 0.5) -> None:
    memory, places = journal.step_room
    place = next(places, None)
    if place is None:
        memory, place = journal.more_step_room()
    if place is not None:
        STEP_LAYOUT.pack_into(memory, place, STEP, 4, step, 100.0 + step, loss, 1e-4, math.nan, 0.1, MARK)


def content(segment: Segment) -> tuple[list[int], list[Any]]:
    """The numbers of the steps, and the other records."""
    steps: list[int] = []
    records: list[Any] = []
    position = 0
    while (found := segment.read(position, most_steps=1000)) is not None:
        assert found.end > position
        position = found.end
        if isinstance(found, Steps):
            steps += [values[2] for values in STEP_LAYOUT.iter_unpack(found.data)]
        else:
            records.append(found.value)
    return steps, records


def all_content(segments: list[Segment]) -> tuple[list[int], list[Any]]:
    each = [content(segment) for segment in segments]
    return [step for steps, _ in each for step in steps], [value for _, values in each for value in values]


@given(
    st.lists(st.one_of(st.integers(0, 2**40), st.dictionaries(st.text(max_size=8), st.text(max_size=300), max_size=3)))
)
def test_everything_comes_back_in_its_order(tmp_path_factory: pytest.TempPathFactory, appended: list[Any]) -> None:
    journal = Journal(str(tmp_path_factory.mktemp("journals")), "job")
    for one in appended:
        append_step(journal, one) if isinstance(one, int) else journal.append(one)
    steps, records = all_content(journal.segments())
    assert steps == [one for one in appended if isinstance(one, int)]
    assert records == [one for one in appended if isinstance(one, dict)]


def test_steps_continue_in_further_segments(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path), "job")
    count = 2 * STEPS_PER_SEGMENT + 5
    for step in range(count):
        append_step(journal, step)
    segments = journal.segments()
    assert [segment.is_full for segment in segments] == [True, True, False]
    assert all_content(segments)[0] == list(range(count))


def test_a_prepared_segment_is_the_next_one(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path), "job")
    for step in range(STEPS_PER_SEGMENT // 2 + 1):
        append_step(journal, step)
    journal.prepare()
    assert len(list(tmp_path.iterdir())) == 2
    for step in range(STEPS_PER_SEGMENT):
        append_step(journal, step)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_step_that_was_cut_off_is_ignored_and_hides_nothing_before_it(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path), "job")
    append_step(journal, 1)
    append_step(journal, 2)
    memory, places = journal.step_room
    STEP_LAYOUT.pack_into(memory, next(places), STEP, 4, 3, 103.0, 0.5, 0.5, 0.5, 0.5, 0)
    assert all_content(journal.segments()) == ([1, 2], [])


def test_a_record_that_was_cut_off_is_ignored(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path), "job")
    journal.append({"kind": "first"})
    (segment,) = journal.segments()
    end = segment.end
    journal.append({"kind": "second"})
    segment.mapped[segment.end - 8 : segment.end - 4] = bytes(4)
    assert all_content([segment]) == ([], [{"kind": "first"}])
    assert segment.read(end, most_steps=1) is None


def test_a_record_that_is_too_long_is_dropped_and_counted(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path), "job")
    journal.append({"text": "x" * SEGMENT_BYTES})
    journal.append({"text": "short"})
    assert (journal.dropped, all_content(journal.segments())[1]) == (1, [{"text": "short"}])


def test_without_a_folder_the_journal_is_in_memory_and_bounded(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    journal = Journal(str(blocked / "journals"), "job")
    for step in range(9 * STEPS_PER_SEGMENT):
        append_step(journal, step)
    assert not journal.is_safe
    assert all_content(journal.segments())[0] == list(range(8 * STEPS_PER_SEGMENT))
    assert journal.dropped == STEPS_PER_SEGMENT


def test_segments_of_a_living_process_are_no_leftovers(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path), "job")
    append_step(journal, 1)
    assert leftover_segments(str(tmp_path)) == []
    for segment in journal.close():
        segment.release()
    (left,) = leftover_segments(str(tmp_path))
    assert (left.job, content(left)[0]) == ("job", [1])
    assert left.discard()
    assert list(tmp_path.iterdir()) == []


def test_the_lock_of_a_dead_process_is_waited_for(tmp_path: Path) -> None:
    """The kernel keeps it as long as anybody reads the dead process's memory under /proc."""
    journal = Journal(str(tmp_path), "job")
    append_step(journal, 7)
    (path,) = tmp_path.iterdir()
    with subprocess.Popen(["true"]) as dead:
        pass
    path.rename(tmp_path / f"{dead.pid}-000001-00000000.journal")
    assert leftover_segments(str(tmp_path), pause=lambda _: None) == []

    def let_go(_seconds: float) -> None:
        for held in journal.close():
            held.release()

    assert all_content(leftover_segments(str(tmp_path), pause=let_go)) == ([7], [])


@pytest.mark.parametrize("size", [0, 100, SEGMENT_BYTES])
def test_a_segment_that_was_never_finished_is_removed(tmp_path: Path, size: int) -> None:
    (tmp_path / "1-000001-aa.journal").write_bytes(bytes(size))
    (tmp_path / "other").write_bytes(b"not ours")
    assert leftover_segments(str(tmp_path)) == []
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_a_closed_journal_takes_nothing_more(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path), "job")
    for segment in journal.close():
        segment.discard()
    append_step(journal, 1)
    journal.append({"kind": "late"})
    assert (journal.segments(), journal.dropped) == ([], 2)


def test_threads_do_not_overwrite_each_other(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path), "job")
    each = STEPS_PER_SEGMENT

    def work(first: int) -> None:
        for step in range(first, first + each):
            append_step(journal, step)

    threads = [threading.Thread(target=work, args=(number * each,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(all_content(journal.segments())[0]) == list(range(3 * each))


def test_a_child_closes_its_copy_and_the_parent_goes_on(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path), "job")
    append_step(journal, 1)
    journal.append({"kind": "first"})
    child = os.fork()
    if child == 0:
        journal.abandon()
        os._exit(0 if leftover_segments(str(tmp_path)) == [] else 1)
    assert os.waitpid(child, 0)[1] == 0
    append_step(journal, 2)
    assert all_content(journal.segments()) == ([1, 2], [{"kind": "first"}])


def test_a_record_is_read_even_if_it_is_no_object(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path), "job")
    journal.append({"a": 1})
    (segment,) = journal.segments()
    segment.mapped[HEADER_BYTES + 8 : HEADER_BYTES + 15] = b"[1,2,3]"
    found = segment.read(0, most_steps=1)
    assert isinstance(found, Record)
    assert (found.value, found.end) == ({}, segment.end)
