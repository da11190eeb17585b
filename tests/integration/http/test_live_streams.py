"""Live streams: what is new arrives once and in order, also after a lost connection."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.servers.live_bench import LiveBench


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBench]:
    url = None if request.param == "sqlite" else request.getfixturevalue("postgres_server").new_database()
    with LiveBench(tmp_path_factory.mktemp("live"), url, heartbeat_seconds=0.2, check_seconds=0.2) as opened:
        yield opened


def test_a_job_s_events_come_from_the_first_and_then_as_they_happen_until_its_end(bench: LiveBench) -> None:
    job = bench.job("a1")
    job.write_events(3)
    with bench.listen("/api/jobs/a1/events") as client:
        client.wait_for(4)
        job.write_events(2, text="two\nlines")
        client.wait_for(6)
        job.end()
        assert client.is_closed.wait(30)
    assert [one.kind for one in client.told] == ["message"] * 7 + ["end"]
    assert client.numbers == [one.data["version"] for one in client.told[:-1]] == list(range(1, 8))
    assert client.told[5].data["text"] == "two\nlines"
    assert {one.data["job"] for one in client.told[:-1]} == {"a1"}
    with bench.listen("/api/jobs/a1/events", last_event_id="6") as again:
        assert again.is_closed.wait(30)
    assert [(one.kind, one.id) for one in again.told] == [("message", "7"), ("end", "7")]
