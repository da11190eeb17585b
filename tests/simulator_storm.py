"""Every fault of the simulator, and SIGKILLs of workers and sweepers, over two installations at one account."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from chaos_loopback import is_alive
from chaos_specs import a_tiny_dataset
from simulated_vast import quick_settings
from stationmaster.model import DatasetRef, Job, Reason, RentalState, State
from stationmaster.simulator.faults import HAPPENING, FaultKind
from stationmaster.simulator.harness import simulator_thread
from storm_recipe import storm_job
from storm_station import StormForge, StormStation

STORM_SETTINGS = {
    "STATIONMASTER_LIMITS__READY": "12",
    "STATIONMASTER_LIMITS__TRANSFER": "8",
    "STATIONMASTER_LIMITS__FETCH": "3",
}
JOB_SECONDS = 25.0
_AT_WORK = (State.TRANSFERRING_DATA, State.EXECUTING, State.FETCHING_RESULTS)
_FAULT_SECONDS = 1.2
# Faults that only strike what another fault has brought about, or that need an order of ours first.
_AIMED = {FaultKind.LOST_ANSWER: "create", FaultKind.SLOW_ANSWER: "create"}
# What must have happened for a job to end for such a reason; a reason that is not here needs its own proof.
_EXPLAINED_BY: dict[Reason, set[FaultKind]] = {
    Reason.OUTBID: {FaultKind.OUTBID, FaultKind.CREDIT_GONE, FaultKind.CONTRACT_ENDS, FaultKind.STATUS_LIES},
    Reason.MACHINE_STOPPED: {FaultKind.CREDIT_GONE, FaultKind.CONTRACT_ENDS, FaultKind.STATUS_LIES, FaultKind.OUTBID},
    Reason.MACHINE_LOST: {
        FaultKind.HOST_VANISHES, FaultKind.CREDIT_GONE, FaultKind.CONTRACT_ENDS, FaultKind.STATUS_LIES, FaultKind.OUTBID
    },
    Reason.NO_PROVIDER_CREDIT: {FaultKind.CREDIT_GONE},
    Reason.ACCESS_REFUSED: {FaultKind.CREDIT_GONE},
    Reason.NO_OFFER: {FaultKind.OFFER_GONE},
    Reason.PREFLIGHT_FAILED: {FaultKind.DISK_FULL, FaultKind.HOST_KEY_SWAPPED, FaultKind.CLOCK_SKEW},
    Reason.TRANSFER_FAILED: {FaultKind.DISK_FULL, FaultKind.HOST_KEY_SWAPPED},
    Reason.STEP_FAILED: {FaultKind.DISK_FULL},
    Reason.NO_MODEL: {FaultKind.DISK_FULL, FaultKind.CREDIT_GONE},
}  # fmt: skip

Tally = Counter[tuple[str, str]]


class Storm:
    """One seeded run: its jobs, its deck of faults, and what became of them."""

    def __init__(self, seed: int, folder: Path, forge: StormForge, *, kinds: Sequence[FaultKind]) -> None:
        self._draw = random.Random(seed)
        self._folder = folder
        self._forge = forge
        self._deck = self._draw.sample(list(kinds), len(kinds))
        self.tally: Tally = Counter()
        self.kills: Counter[tuple[str, str]] = Counter()

    def run(self, *, jobs: int, most_seconds: float) -> None:
        """Until every fault has struck, or the time is over; then the dust settles, and everything is checked."""
        settings = quick_settings(self._folder / "simulator", credit_usd=50.0)
        dataset = a_tiny_dataset(self._folder / "dataset")
        with simulator_thread(settings) as url:
            bids = {"STATIONMASTER_VASTAI__INTERRUPTIBLE": "true"}
            stations = [
                StormStation(self._folder / "demand", url, self._forge, **STORM_SETTINGS),
                StormStation(self._folder / "bids", url, self._forge, **STORM_SETTINGS, **bids),
            ]
            try:
                self._blow(stations, dataset, jobs=jobs, ends=time.monotonic() + most_seconds)
                self._calm(stations)
                for station in stations:
                    station.check()
                    check_reasons(station)
                    self.kills += station.kills
                self._count(stations)
            finally:
                for station in stations:
                    station.close()

    def _blow(self, stations: list[StormStation], dataset: DatasetRef, *, jobs: int, ends: float) -> None:
        processes = {(station.home.name, role): 0 for station in stations for role in ("worker", "sweeper")}
        submitted = 0
        while time.monotonic() < ends:
            left = self._left(stations)
            if not left and submitted >= jobs:
                break
            busy = sum(job.state is not State.ENDED for station in stations for job in station.jobs())
            if submitted < jobs or busy < min(jobs, 4):
                self._submit(stations[submitted % 2], dataset, submitted)
                submitted += 1
            self._arm(left, stations)
            self._keep_going(stations, processes)
            self._pay(stations[0])
            time.sleep(self._draw.uniform(0.05, 0.3))
        stations[0].customer.http.delete("/simulator/faults")
        for station in stations:
            for role in ("worker", "sweeper"):
                if pid := processes[station.home.name, role]:
                    station.kill(pid, role)

    def _left(self, stations: list[StormStation]) -> list[FaultKind]:
        """Faults of the deck that have not met a live rental yet."""
        met = {strike["kind"] for strike in stations[0].struck() if _met(stations, strike)}
        return [kind for kind in self._deck if kind not in met]

    def _submit(self, station: StormStation, dataset: DatasetRef, number: int) -> None:
        station.submit(storm_job(f"job-{number}", dataset, journal=station.journal, steps=15, max_seconds=JOB_SECONDS))

    def _arm(self, left: list[FaultKind], stations: list[StormStation]) -> None:
        """Faults of requests are armed as they come; those of machines one by one, where something is going on."""
        customer = stations[0].customer
        armed = {fault["kind"] for fault in customer.http.get("/simulator/faults").json()["armed"]}
        for kind in left:
            if kind not in HAPPENING and kind not in armed and self._draw.random() < 0.15:
                customer.arm(kind, operation=_AIMED.get(kind), seconds=_FAULT_SECONDS)
        happening = [kind for kind in left if kind in HAPPENING]
        if FaultKind.START_QUEUED in left:  # only what was stopped is started again
            happening.append(FaultKind.CREDIT_GONE)
        if not happening or self._draw.random() > 0.3:
            return
        if armed & HAPPENING:
            customer.http.delete("/simulator/faults")  # its machine is gone or down; the others are armed anew
            return
        kind = self._draw.choice(happening)
        stations = stations[1:] if kind is FaultKind.OUTBID else stations
        at_work = [rental for station in stations for rental in _at_work(station)]
        if at_work:
            customer.arm(kind, instance_id=int(self._draw.choice(at_work)), seconds=_FAULT_SECONDS)

    def _keep_going(self, stations: list[StormStation], processes: dict[tuple[str, str], int]) -> None:
        """Somebody starts what died; now and then something is killed."""
        for station in stations:
            for role in ("worker", "sweeper"):
                pid = processes[station.home.name, role]
                if pid == 0 or not is_alive(pid):
                    processes[station.home.name, role] = station.start(role)
                elif self._draw.random() < 0.04:
                    station.kill(pid, role)

    def _pay(self, station: StormStation) -> None:
        if station.credit() < 1 and self._draw.random() < 0.3:
            station.pay(20)

    def _calm(self, stations: list[StormStation]) -> None:
        """Whole processes, no more faults, money in the account: everything comes to its end."""
        stations[0].pay(50)
        for station in stations:
            worker = station.start("worker")
            station.until(lambda worker=worker: not is_alive(worker), "the end of every job", seconds=90)
        for station in stations:
            sweeper = station.start("sweeper")
            station.until(lambda station=station: _all_gone(station), "the end of every machine", seconds=30)
            station.leave(sweeper)

    def _count(self, stations: list[StormStation]) -> None:
        """Every strike that met a live rental, with the state of the job that it met."""
        for strike in stations[0].struck():
            for state in set(_met(stations, strike)):
                self.tally[strike["kind"], state] += 1


def _at_work(station: StormStation) -> list[str]:
    """Machines that are past their login and not yet on their way out."""
    busy = {job.id for job in station.jobs() if job.state in _AT_WORK}
    return [rental.provider_id for rental in station.rentals()
            if rental.job_id in busy and rental.state is RentalState.HELD and rental.provider_id]  # fmt: skip


def missing(tally: Tally, kinds: Sequence[FaultKind], *, times: int) -> list[str]:
    """Faults that did not strike live rentals so often."""
    struck: Counter[str] = Counter()
    for (kind, _), number in tally.items():
        struck[kind] += number
    return [kind for kind in kinds if struck[kind] < times]


def table(tally: Tally) -> str:
    """The tally as people read it: one line per fault."""
    lines = []
    for kind in sorted({kind for kind, _ in tally}):
        states = ", ".join(f"{state} {number}" for (one, state), number in sorted(tally.items()) if one == kind)
        lines.append(f"{kind:<22} {states}")
    return "\n".join(lines)


def check_reasons(station: StormStation) -> None:
    """Every job ended for a reason that is true: proved by its model, by the clock, or by a fault that struck."""
    struck = {FaultKind(strike["kind"]) for strike in station.struck()}
    for job in station.jobs():
        assert job.reason is not None
        if job.reason is Reason.FINISHED:
            safe = [one for one in station.store.checkpoints.of_job(job.id) if one.verified_at and one.step is None]
            assert safe, f"{job.id} finished without a model"
            assert safe[0].location
            assert Path(safe[0].location).is_file()
        elif job.reason is Reason.HARD_LIMIT:
            assert job.deadline_at is not None
            assert _outcome_at(station, job) >= job.deadline_at, f"{job.id} ended before its limit\n{station.story()}"
        elif job.reason is not Reason.MACHINE_NOT_READY:  # there the deadline is as good a reason as a fault
            explained = _EXPLAINED_BY.get(job.reason, set()) & struck
            assert explained, f"nothing explains {job.id}: {job.reason} {job.explanation}\n{station.story()}"


def _all_gone(station: StormStation) -> bool:
    return not station.alive() and all(rental.gone_at is not None for rental in station.rentals())


def _met(stations: Sequence[StormStation], strike: dict[str, object]) -> list[str]:
    return [state for station in stations for state in _states_met(station, strike)]


def _states_met(station: StormStation, strike: dict[str, object]) -> list[str]:
    """States at that moment of the jobs whose rental the fault met; where it met no single machine, of all with one."""
    at = float(str(strike["at"]))
    found = []
    for rental in station.rentals():
        is_live = rental.create_sent_at is not None and rental.create_sent_at <= at + 0.5
        is_live = is_live and (rental.gone_at is None or at <= rental.gone_at)
        is_met = strike["label"] in (None, rental.label) or str(strike["instance_id"]) == rental.provider_id
        if is_live and is_met:
            found.append(_state_at(station, rental.job_id, at))
    return found


def _state_at(station: StormStation, job_id: str, at: float) -> str:
    moves = [event for event in station.store.events.of_job(job_id) if event.kind == "state" and event.at <= at]
    return str(moves[-1].payload["to"]) if moves else State.QUEUED.value


def _outcome_at(station: StormStation, job: Job) -> float:
    return next(event.at for event in station.store.events.of_job(job.id) if event.kind == "outcome")
