from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from stationmaster.money import MicroDollars, cost, from_dollars
from stationmaster.simulator.billing import charge_until, charges_by_day
from stationmaster.simulator.instances import ActualStatus, Address, Instance, InstanceOrder, WantedState
from stationmaster.simulator.market import Market

ADDRESS = Address(direct_host="127.0.0.1", direct_port=1, proxy_host="127.0.0.1", proxy_port=2)
OFFER = replace(
    Market(seed=1).offers(0.0, rented=(), listings={})[0],
    gpu_usd_per_hour=from_dollars("0.36"),
    storage_usd_per_gb_month=from_dollars("0.15"),
    traffic_usd_per_gb=from_dollars("0.01"),
)
START = 1_700_000_000.0
spans = st.floats(min_value=0, max_value=400_000)


def instance(*, bid: MicroDollars | None = None) -> Instance:
    order = InstanceOrder(
        image="i", label="job-a", disk_gb=40.0, environment=(), onstart=None, runtype="ssh", bid_usd_per_hour=bid
    )
    return Instance(
        id=1,
        account_id=1,
        offer=OFFER,
        order=order,
        api_key="",
        marker="",
        created_at=START,
        end_at=9e9,
        ready_at=START,
    )


def test_loading_costs_the_disk_alone_and_running_the_gpu_too() -> None:
    loading = charge_until(instance(), START + 3600)
    assert (loading.gpu, loading.disk) == (0, 8333)
    running = charge_until(instance().came_up(START + 3600, ADDRESS), START + 7200)
    assert (running.gpu, running.disk) == (360_000, 16666)


def test_a_stopped_instance_costs_its_disk_and_a_destroyed_one_nothing_more() -> None:
    stopped = instance().came_up(START, ADDRESS).went_down(START + 3600, message="")
    assert charge_until(stopped, START + 7200).gpu == charge_until(stopped, START + 3600).gpu == 360_000
    assert charge_until(stopped, START + 7200).disk > charge_until(stopped, START + 3600).disk
    gone = replace(stopped, destroyed_at=START + 7200)
    assert charge_until(gone, START + 90_000) == charge_until(gone, START + 7200)


def test_a_changed_bid_counts_from_the_moment_it_is_made() -> None:
    running = instance(bid=from_dollars("0.20")).came_up(START, ADDRESS)
    raised = running.bidding(from_dollars("0.30"), START + 3600)
    assert charge_until(raised, START + 7200).gpu == 500_000


def test_traffic_is_charged_by_the_gigabyte() -> None:
    charge = charge_until(replace(instance(), downloaded_bytes=2_000_000_000, uploaded_bytes=500_000_000), START)
    assert (charge.downloads, charge.uploads, charge.total) == (20_000, 5_000, 25_000)


def test_a_start_that_was_given_up_is_told_by_its_three_states() -> None:
    given_up = replace(instance(), actual=ActualStatus.LOADING).went_down(START, message="out of credit")
    assert (given_up.actual, given_up.wanted, given_up.contract, given_up.scheduled) == (
        ActualStatus.LOADING,
        WantedState.STOPPED,
        WantedState.STOPPED,
        WantedState.STOPPED,
    )


@given(spans, spans, spans, st.integers(0, 10**12))
def test_the_days_of_an_instance_add_up_to_its_whole_bill(boot: float, run: float, rest: float, sent: int) -> None:
    up = replace(instance(), uploaded_bytes=sent).came_up(START + boot, ADDRESS)
    down = up.went_down(START + boot + run, message="")
    now = START + boot + run + rest
    days = charges_by_day(down, now)
    assert sum(day.total for day in days) == charge_until(down, now).total
    assert [day.start for day in days[1:]] == [day.end for day in days[:-1]]
    assert all(int(day.start // 86400) == int((day.end - 1e-3) // 86400) for day in days if day.end > day.start + 1)


@given(spans)
def test_the_bill_is_rate_times_time_to_the_micro_dollar(run: float) -> None:
    charge = charge_until(instance().came_up(START, ADDRESS), START + run)
    assert abs(charge.gpu - cost(OFFER.gpu_usd_per_hour, run)) <= 1
