"""A file that wandb wrote offline (tests/fixtures/series/make.py), whole, cut off and damaged; statistics of GPUs."""

from __future__ import annotations

import struct
import zlib

import pytest

from stationmaster.series.sources.tables import tables_of
from stationmaster.series.sources.wandb import MARK, read_wandb
from tests.support.programs import ROOT

FILE = (ROOT / "tests" / "fixtures" / "series" / "run-cats.wandb").read_bytes()


def test_the_history_becomes_steps_and_nested_values() -> None:
    steps, values, *_ = tables_of(read_wandb(FILE))
    assert steps.values("step") == list(range(20))
    assert steps.values("loss")[3] == pytest.approx(1 / 4)
    assert steps.values("loss")[7] is None
    assert steps.values("learning_rate")[10] == pytest.approx(5e-5)
    assert all(at > 1.7e9 for at in steps.values("timestamp"))
    assert values.where("name", "eval.score").values("value") == [float(step) for step in range(20)]
    assert set(values.values("name")) == {"eval.score", "eval.loss"}


def test_configuration_and_exit_are_facts_of_the_run() -> None:
    info = read_wandb(FILE).info
    assert info["project"] == "cats"
    assert info["exit_code"] == "0"
    assert info["config.lr"] == "0.0001"
    assert info["config.model.rank"] == "8"
    assert "config.prompt" not in info, "a long value"
    assert float(info["started_at"]) > 1.7e9


def test_statistics_of_the_machine_become_samples() -> None:
    samples = next(table for table in tables_of(read_wandb(FILE)) if table.name == "MetricsSample")
    assert max(value for value in samples.values("available_memory_gb") if value) > 0.1
    assert max(value for value in samples.values("main_process_memory_gb") if value) > 0.01


def test_statistics_of_a_gpu_become_its_samples() -> None:
    items = {
        "gpu.0.gpu": 97, "gpu.0.memoryAllocatedBytes": 8 * 2**30, "gpu.0.temp": 61, "gpu.0.powerWatts": 301.5,
        "gpu.0.enforcedPowerLimitWatts": 450, "gpu.1.gpu": 3, "gpu.0.memoryAllocated": 33.1,
    }  # fmt: skip
    stamp = _field(1, 1_700_000_000) + _field(2, 500_000_000)
    stats = _field(2, stamp) + b"".join(
        _field(3, _field(1, key.encode()) + _field(16, str(value).encode())) for key, value in items.items()
    )
    (gpus,) = tables_of(read_wandb(MARK + _block(_field(7, stats))))
    assert gpus.values("timestamp") == [1_700_000_000.5] * 2
    assert gpus.values("gpu_index") == [0, 1]
    assert gpus.values("memory_used_gb") == [8.0, None]
    assert gpus.values("utilization_percent") == [97.0, 3.0]
    assert gpus.values("temperature_c") == [61.0, None]
    assert gpus.values("power_watts") == [301.5, None]
    assert gpus.values("power_limit_watts") == [450.0, None]


@pytest.mark.parametrize("cut", [1, 6, 7, 40, 500, 3000, len(FILE) - 20_000, len(FILE) - len(MARK)])
def test_a_file_that_is_cut_off_keeps_what_came_before(cut: int) -> None:
    whole, found = read_wandb(FILE), read_wandb(FILE[:-cut])
    assert found.scalars == whole.scalars[: len(found.scalars)]


def test_a_cut_off_record_is_noted() -> None:
    assert read_wandb(FILE[:-3]).notes == ("the last record is cut off",)
    assert read_wandb(FILE).notes == ()


def test_a_damaged_record_is_left_out_and_noted() -> None:
    place = FILE.rindex(b'"text"')
    found = read_wandb(FILE[:place] + b"X" + FILE[place + 1 :])
    assert found.notes == ("a damaged record was left out",)
    assert len(found.scalars) >= len(read_wandb(FILE).scalars) - 4


def _field(number: int, value: int | bytes) -> bytes:
    """One field in the wire format: a number, or a text or message."""
    if isinstance(value, bytes):
        return _varint(number << 3 | 2) + _varint(len(value)) + value
    return _varint(number << 3) + _varint(value)


def _varint(number: int) -> bytes:
    return bytes([number & 0x7F | 0x80]) + _varint(number >> 7) if number > 0x7F else bytes([number])


def _block(record: bytes) -> bytes:
    return struct.pack("<IHB", zlib.crc32(record, zlib.crc32(b"\x01")), len(record), 1) + record
