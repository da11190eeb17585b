"""Commands that stay go on after a lost connection: each item once, each loss told once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stationmaster.cli.reconnecting import reconnected
from stationmaster.errors import NotSignedIn, ServerError, StationmasterError, StoreError, StoreNewer


class Flaky:
    """Numbers up to 5; `losses` are raised, each before the number that it stands for."""

    def __init__(self, **losses: StationmasterError) -> None:
        self.losses = losses
        self.told = 0
        self.dead_probes = 2
        self.paused: list[float] = []

    def items(self) -> Iterator[int]:
        while self.told < 5:
            if (loss := self.losses.pop(f"at_{self.told + 1}", None)) is not None:
                raise loss
            self.told += 1
            yield self.told

    def probe(self) -> None:
        self.dead_probes -= 1
        if self.dead_probes >= 0:
            raise ServerError("does not answer")

    def all(self) -> list[int]:
        return list(reconnected(self.items, self.probe, pause=self.paused.append))


def test_a_lost_connection_is_told_once_and_nothing_is_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    flaky = Flaky(at_3=ServerError("http://x does not answer"))
    assert flaky.all() == [1, 2, 3, 4, 5]
    assert flaky.paused == [0.5, 1.0, 2.0]
    assert capsys.readouterr().err.splitlines() == [
        "note: connection lost, trying again: http://x does not answer",
        "note: connection is back",
    ]


def test_a_lost_store_is_waited_for_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert Flaky(at_1=StoreError("gone"), at_4=StoreError("gone")).all() == [1, 2, 3, 4, 5]
    assert capsys.readouterr().err.count("connection is back") == 2


@pytest.mark.parametrize("problem", [NotSignedIn("no token"), StoreNewer("newer")])
def test_what_waiting_does_not_heal_is_raised(problem: StationmasterError) -> None:
    with pytest.raises(type(problem)):
        Flaky(at_3=problem).all()
