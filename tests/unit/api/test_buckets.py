"""Token buckets: how often something may happen, per key."""

from __future__ import annotations

from stationmaster.api.gate.buckets import Buckets


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_each_key_has_its_own_bucket_which_fills_again() -> None:
    clock = Clock()
    buckets = Buckets(60, clock=clock)
    assert [buckets.take("a") for _ in range(60)] == [0.0] * 60
    assert 0.9 < buckets.take("a") <= 1.0
    assert buckets.take("b") == 0.0
    clock.now += 2.0
    assert [buckets.take("a") > 0 for _ in range(3)] == [False, False, True]


def test_a_bucket_is_never_more_than_full() -> None:
    clock = Clock()
    buckets = Buckets(2, clock=clock)
    buckets.take("a")
    clock.now += 3600.0
    assert [buckets.take("a") > 0 for _ in range(3)] == [False, False, True]


def test_asking_how_long_to_wait_takes_nothing() -> None:
    buckets = Buckets(1, clock=Clock())
    assert [buckets.wait_seconds("a") for _ in range(3)] == [0.0, 0.0, 0.0]


def test_memory_is_bounded_however_many_keys_come() -> None:
    clock = Clock()
    buckets = Buckets(5, clock=clock)
    for number in range(30_000):
        clock.now += 0.0001
        buckets.take(f"address {number}")
    assert len(buckets._levels) <= 10_000
