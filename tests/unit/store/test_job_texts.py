"""A job's texts are the same whether they are made anew or taken from the last write."""

from __future__ import annotations

import json
from dataclasses import replace

from stationmaster.model import Job, Progress, Setbacks, Watching
from stationmaster.store.attempt_codec import attempt_to_json
from stationmaster.store.codec import progress_to_text
from stationmaster.store.job_texts import Texts, texts_as_read, texts_of
from tests.support.jobs.spine_values import job

WATCHED = Watching(reader={"line": "☃ \udce9"}, stalled=True)


def test_texts_say_what_the_job_says() -> None:
    watched = job(watching=WATCHED, setbacks=Setbacks(failures=2), progress=Progress(step=3))
    _assert_texts(texts_of(watched, None), watched)


def test_a_changed_part_is_made_anew_and_the_others_are_taken_over() -> None:
    before = job(watching=WATCHED, setbacks=Setbacks(failures=2))
    known = texts_of(before, None)
    after = replace(before, setbacks=Setbacks(failures=3))
    texts = texts_of(after, known)
    _assert_texts(texts, after)
    assert texts.parts["watching"] is known.parts["watching"]
    assert texts.parts["setbacks"] is not known.parts["setbacks"]


def test_a_part_that_is_empty_again_is_left_out() -> None:
    before = job(watching=WATCHED, setbacks=Setbacks(failures=2))
    after = replace(before, watching=Watching())
    _assert_texts(texts_of(after, texts_of(before, None)), after)


def test_only_the_progress_changes() -> None:
    before = job(watching=WATCHED)
    known = texts_of(before, None)
    after = replace(before, progress=Progress(step=4))
    texts = texts_of(after, known)
    _assert_texts(texts, after)
    assert texts.memory is known.memory


def test_what_was_read_goes_back_as_it_was_unless_something_changes() -> None:
    """Another order of keys, and a key that this version does not know."""
    read = job(setbacks=Setbacks(failures=2), unread={"newer": [1]})
    known = texts_as_read(read, progress="{}", memory='{"newer": [1], "failures": 2}')
    assert texts_of(replace(read, attempt=2), known).memory == '{"newer": [1], "failures": 2}'
    changed = replace(read, watching=WATCHED)
    _assert_texts(texts_of(changed, known), changed)


def test_a_part_has_the_last_word_over_an_unread_value_of_the_same_key() -> None:
    spoilt = job(setbacks=Setbacks(failures=2), unread={"failures": "many"})
    assert texts_of(spoilt, None).memory.count('"failures"') == 1
    assert json.loads(texts_of(spoilt, None).memory)["failures"] == 2


def _assert_texts(texts: Texts, job: Job) -> None:
    expected = json.loads(json.dumps(attempt_to_json(job)))
    assert json.loads(texts.memory) == expected
    assert texts.progress == (job.progress, progress_to_text(job.progress))
    texts.memory.encode()  # an engine takes it
