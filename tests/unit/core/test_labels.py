"""The names that rented machines carry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.model import Label

installations = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=8, max_size=8)
jobs = st.from_regex(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?", fullmatch=True)
labels = st.builds(Label, installation=installations, job=jobs, attempt=st.integers(0, 10_000))


@given(labels)
def test_job_and_attempt_are_found_again_in_a_label(label: Label) -> None:
    assert Label.parse(str(label)) == label


@given(labels, labels)
def test_two_attempts_never_share_a_label(one: Label, other: Label) -> None:
    assert (str(one) == str(other)) == (one == other)


@pytest.mark.parametrize(
    "text",
    ["", "sm", "sm-", "web-server", "sm-short-job-1", "sm-ab12cd34-job", "sm-ab12cd34-job-x", "sm-AB12CD34-job-1",
     "xsm-ab12cd34-job-1", "sm-ab12cd34-job-1 ", "sm-ab12cd34-job-1\n", "sm-ab12cd34-job-1#m7", "sm-ab12cd34--1"],
)  # fmt: skip
def test_other_peoples_names_are_no_labels(text: str) -> None:
    assert Label.parse(text) is None


@given(st.text())
def test_any_text_can_be_asked(text: str) -> None:
    found = Label.parse(text)
    assert found is None or text.startswith("sm-")
