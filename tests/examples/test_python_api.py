"""examples/python-api against a real server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands.example_runs import EXAMPLES, Person
from tests.support.commands.served_home import ServedHome

EXAMPLE = EXAMPLES / "python-api"
QUICK = ("steps=20", "seconds_per_step=0", "save_every=10", "sample_every=20")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedHome]:
    price = {"STATIONMASTER_LOOPBACK__PRICE_PER_HOUR": "1"}
    with ServedHome(tmp_path_factory.mktemp("served"), **price) as home:
        yield home


def test_a_program_trains_and_gets_the_model(served: ServedHome, pictures: Path, tmp_path: Path) -> None:
    person = Person(served)
    settings = {"STATIONMASTER_SERVER": served.url, "STATIONMASTER_TOKEN": served.token()}
    words = (sys.executable, EXAMPLE / "train.py", pictures)
    declined = person.run(*words, "0.000001", *QUICK, cwd=tmp_path, environ=settings)
    assert (declined.code, "declined" in declined.err) == (1, True)
    ran = person.run(*words, "5", *QUICK, cwd=tmp_path, environ=settings)
    assert ran.code == 0, ran.err
    assert "COMPLETED" in ran.out
    assert Path(ran.out.splitlines()[-1]).read_bytes() == (tmp_path / "from-python.safetensors").read_bytes()
    failed = person.run(*words, "5", *QUICK, 'fault="crash"', "fault_at=5", cwd=tmp_path, environ=settings)
    assert (failed.code, "FAILED" in failed.out) == (1, True)
