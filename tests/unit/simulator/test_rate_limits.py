from __future__ import annotations

from stationmaster.simulator.operations import Operation, operation_of
from stationmaster.simulator.rate_limits import RateLimits


class Stopwatch:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def operation(method: str, path: str) -> Operation:
    found = operation_of(method, path)
    assert found is not None
    return found[0]


def test_a_caller_who_waits_passes_and_one_who_does_not_is_refused() -> None:
    watch = Stopwatch()
    limits = RateLimits(scale=1.0, monotonic=watch)
    create = operation("PUT", "/api/v0/asks/5")
    assert limits.refuse("a", create) is None
    watch.seconds = 4.4
    assert limits.refuse("a", create) is not None
    assert limits.refuse("b", create) is None
    watch.seconds = 4.6
    assert limits.refuse("a", create) is None


def test_a_refused_call_does_not_push_the_next_one_back() -> None:
    watch = Stopwatch()
    limits = RateLimits(scale=1.0, monotonic=watch)
    destroy = operation("DELETE", "/api/v0/instances/5")
    limits.refuse("a", destroy)
    for second in (1.0, 2.0):
        watch.seconds = second
        assert limits.refuse("a", destroy) is not None
    watch.seconds = 3.1
    assert limits.refuse("a", destroy) is None


def test_ten_searches_a_minute_pass_however_close_together() -> None:
    watch = Stopwatch()
    limits = RateLimits(scale=1.0, monotonic=watch)
    search = operation("POST", "/api/v0/bundles")
    assert [limits.refuse("a", search) is None for _ in range(11)] == [True] * 10 + [False]
    watch.seconds = 60.1
    assert limits.refuse("a", search) is None


def test_limits_can_be_turned_off() -> None:
    limits = RateLimits(scale=0.0, monotonic=Stopwatch())
    create = operation("PUT", "/api/v0/asks/5")
    assert [limits.refuse("a", create) for _ in range(20)] == [None] * 20


def test_paths_that_are_no_part_of_the_service_are_no_operation() -> None:
    assert operation_of("POST", "/simulator/faults") is None
    assert operation_of("GET", "/instance_logs/x.log") is None
