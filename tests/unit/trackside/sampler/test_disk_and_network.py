"""Rates are measured between two readings, of hardware alone where there is some."""

from __future__ import annotations

from pathlib import Path

from trackside.sampler.disk_and_network import IoMeter, parse_network

NETWORK = (
    "Inter-|\n face |\n    lo: {lo} 0 0 0 0 0 0 0 {lo} 0\n"
    "  eth0: {eth} 0 0 0 0 0 0 0 {eth} 0\n br0: 5 0 0 0 0 0 0 0 5 0\n"
)


def write(proc: Path, *, sectors: int, network: int) -> None:
    rows = [f"254 {part} vda{part or ''} 1 1 {sectors} 1 1 1 {2 * sectors} 1 0 1 1" for part in (0, 1)]
    (proc / "diskstats").write_text("\n".join(rows))
    (proc / "net").mkdir(exist_ok=True)
    (proc / "net/dev").write_text(NETWORK.format(lo=10 * network, eth=network))


def test_rates_are_those_since_the_last_reading(tmp_path: Path) -> None:
    for device in ("block/vda/device", "block/loop0", "class/net/eth0/device", "class/net/br0"):
        (tmp_path / device).mkdir(parents=True)
    now = [10.0]
    write(tmp_path, sectors=1000, network=0)
    meter = IoMeter(str(tmp_path), now=lambda: now[0], proc=str(tmp_path), sys=str(tmp_path))
    first = meter.read()
    assert first[2:] == (None, None, None, None)
    assert 0 < (first.disk_free_gb or 0) <= (first.disk_total_gb or 0)
    write(tmp_path, sectors=1000 + 19531, network=5_000_000)
    now[0] = 15.0
    assert [round(rate or 0.0, 2) for rate in meter.read()[2:]] == [2.0, 4.0, 1.0, 1.0]


def test_counters_that_begin_anew_give_no_rate(tmp_path: Path) -> None:
    (tmp_path / "block/vda/device").mkdir(parents=True)
    now = [10.0]
    write(tmp_path, sectors=1000, network=1000)
    meter = IoMeter(str(tmp_path), now=lambda: now[0], proc=str(tmp_path), sys=str(tmp_path))
    meter.read()
    write(tmp_path, sectors=0, network=0)
    now[0] = 15.0
    assert meter.read()[2:] == (None, None, None, None)


def test_a_container_without_network_cards_counts_all_interfaces_but_loopback() -> None:
    assert parse_network(NETWORK.format(lo=100, eth=7).encode(), set()) == (12, 12)
