"""Machines from the JSON of Vast.ai's command line, in a file that is written again and again or in a pipe."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.control.monitoring.json_stream import JsonStream
from stationmaster.control.monitoring.listing_input import StreamListing, open_listing
from stationmaster.control.monitoring.sources import Sightings
from stationmaster.errors import ProviderFault, UserError
from tests.support.asynchronous_tests import asynchronous, until

ROW = {
    "id": 30007012,
    "actual_status": "running",
    "label": "cats",
    "gpu_name": "RTX 4090",
    "num_gpus": 1,
    "gpu_util": 87.0,
    "mem_usage": 8.0,
    "mem_limit": 32.0,
    "dph_total": 0.467,
    "start_date": 1000.0,
    "ssh_host": "ssh4.vast.ai",
    "ssh_port": 17012,
    "duration": 999999.0,
}


def raw(*rows: Any, indent: int | None = 1) -> bytes:
    return json.dumps(list(rows), indent=indent).encode()


def ids(seen: Sightings) -> list[str]:
    return [machine.id for machine in seen.machines]


@asynchronous
async def test_a_file_is_read_again_only_when_it_has_changed(tmp_path: Path) -> None:
    file = tmp_path / "machines.json"
    file.write_bytes(raw(ROW))
    os.utime(file, (2000.0, 2000.0))
    listing = open_listing(str(file), key_path="/key")
    seen = await listing.machines()
    (machine,) = seen.machines
    assert (machine.label, machine.gpu_type, machine.memory_percent, machine.started_at) == (
        "cats",
        "RTX 4090",
        25.0,
        1000.0,
    )
    assert (seen.at, machine.accesses[0].host, machine.cost_per_hour) == (2000.0, "ssh4.vast.ai", 467_000)
    assert await listing.machines() is seen
    file.write_bytes(raw(ROW, {**ROW, "id": 2}))
    assert ids(await listing.machines()) == ["30007012", "2"]


@asynchronous
async def test_a_file_that_is_half_written_or_away_is_a_fault_until_it_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "machines.json"
    file.write_bytes(raw(ROW))
    listing = open_listing(str(file), key_path=None)
    await listing.machines()
    for text in (raw(ROW)[:50], b"", b'"no list"', b"\xff\xfe"):
        file.write_bytes(text)
        with pytest.raises(ProviderFault, match=r"machines\.json"):
            await listing.machines()
    file.unlink()
    with pytest.raises(ProviderFault, match="cannot be read"):
        await listing.machines()
    file.write_bytes(json.dumps({"instances": [ROW]}).encode())
    assert ids(await listing.machines()) == ["30007012"]


@asynchronous
async def test_an_instance_that_cannot_be_read_is_skipped_and_the_others_are_shown(tmp_path: Path) -> None:
    file = tmp_path / "machines.json"
    file.write_bytes(raw({"id": "seven"}, ROW, 17, None, {**ROW, "gpu_util": "busy", "id": 3}))
    seen = await open_listing(str(file), key_path=None).machines()
    assert (ids(seen), len(seen.unreadable)) == (["30007012", "3"], 3)
    assert "instance seven skipped" in seen.unreadable[0]


def test_a_file_that_is_not_there_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        open_listing(str(tmp_path / "none.json"), key_path=None)


@asynchronous
async def test_of_documents_in_a_pipe_the_newest_counts_and_the_last_one_stays() -> None:
    reading, writing = os.pipe()
    listing = StreamListing(lambda: reading, what="the pipe", key_path=None)
    os.write(writing, raw(ROW)[:40])
    os.write(writing, raw(ROW)[40:] + b"\n")
    assert ids(await listing.machines()) == ["30007012"]
    os.write(writing, b"\n" + raw({**ROW, "id": 5}, indent=None) + b"\n")
    await _until_listed(listing, ["5"])
    os.write(writing, b"failed with error 502\n")
    await _until_problem(listing, "failed with error 502")
    os.write(writing, raw({**ROW, "id": 6}))
    await _until_listed(listing, ["6"])
    os.close(writing)
    await _until_last(listing)
    assert ids(await listing.machines()) == ["6"]


@pytest.mark.parametrize(
    ("text", "problem"), [(b"", "has no list"), (b"no key is set\n", "no key is set"), (b"{}", "no list of instances")]
)
@asynchronous
async def test_a_pipe_that_ends_without_a_list_is_the_person_s_to_mend(text: bytes, problem: str) -> None:
    reading, writing = os.pipe()
    listing = StreamListing(lambda: reading, what="the pipe", key_path=None)
    os.write(writing, text)
    os.close(writing)
    with suppress(ProviderFault, UserError):
        await listing.machines()
    await until(lambda: listing._has_ended, what="the end of the pipe", seconds=30.0)
    with pytest.raises(UserError, match=problem):
        await listing.machines()
    os.close(reading)


@given(st.lists(st.integers(0, 200), max_size=8))
def test_documents_do_not_depend_on_where_the_stream_was_cut(cuts: list[int]) -> None:
    text = b'warn\xc3\xa9 [x]\n[{"id": 1, "label": "a [b\\n]"}]\n\n{"instances": []} [1]\nbroken\n[{"id"\n[3]\n'
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    stream = JsonStream()
    parts = [text[start:end] for start, end in pairwise(places)]
    found = [document for part in parts for document in stream.feed(part)]
    assert found == [[{"id": 1, "label": "a [b\n]"}], {"instances": []}, [1], [3]]


def test_a_document_that_never_ends_does_not_fill_the_memory() -> None:
    stream = JsonStream(most_characters=1000)
    for _ in range(100):
        assert list(stream.feed(b'["' + b"x" * 100)) == []
    assert len(stream._buffer) <= 1200


async def _until_listed(listing: StreamListing, names: list[str]) -> None:
    found: list[str] = []
    while found != names:
        try:
            found = ids(await listing.machines())
        except ProviderFault:
            continue


async def _until_problem(listing: StreamListing, text: str) -> None:
    await until(lambda: text in (listing._problem or ""), what=text, seconds=30.0)
    with pytest.raises(ProviderFault, match=text):
        await listing.machines()


async def _until_last(listing: StreamListing) -> None:
    await until(lambda: listing._has_ended, what="the end of the pipe", seconds=30.0)
    assert (await listing.machines()).last
