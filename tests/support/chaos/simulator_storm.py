"""Every fault of the simulator, and SIGKILLs of workers and sweepers, over two installations at one account."""

from __future__ import annotations

import itertools
import math
import random
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from stationmaster.model import DatasetRef, Job, Reason, State
from stationmaster.simulator.faults import HAPPENING, FaultKind
from tests.support.chaos.specs import a_tiny_dataset
from tests.support.chaos.storm_recipe import storm_job
from tests.support.chaos.storm_station import StormForge, StormStation, holding, is_running

# Limits on a quiet computer; on a busy one they are longer.
_READY_SECONDS = 12.0
_TRANSFER_SECONDS = 8.0
_FETCH_SECONDS = 3.0
_CLOSING_SECONDS = 4.5
_ABANDON_SECONDS = 4.0
_JOB_SECONDS = 25.0
_RENTING: dict[str, dict[str, str]] = {"demand": {}, "bids": {"STATIONMASTER_VASTAI__INTERRUPTIBLE": "true"}}
_FAULT_SECONDS = 1.2
_ARMED_AT_A_LOOK = 0.3
# Where a machine is to be when it is struck; in a storm that goes on for long, anywhere past its login will do.
_AIMS = ((State.EXECUTING,), (State.EXECUTING,), (State.EXECUTING, State.FETCHING_RESULTS), (State.TRANSFERRING_DATA,))
_ANYWHERE = (State.TRANSFERRING_DATA, State.EXECUTING, State.FETCHING_RESULTS)
_PATIENCE_SECONDS = 10.0
_SETTLED_SECONDS = 5.0  # after which a strike is known to have met a live rental, or not
_KILLED_AT_A_LOOK = 0.025
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
    Reason.MACHINE_NOT_READY: {
        FaultKind.NEVER_READY, FaultKind.ERROR_WITH_CONTRACT, FaultKind.HOST_VANISHES, FaultKind.CREDIT_GONE,
        FaultKind.OUTBID, FaultKind.CONTRACT_ENDS, FaultKind.STATUS_LIES
    },
    Reason.PREFLIGHT_FAILED: {FaultKind.DISK_FULL, FaultKind.HOST_KEY_SWAPPED, FaultKind.CLOCK_SKEW},
    Reason.TRANSFER_FAILED: {FaultKind.DISK_FULL, FaultKind.HOST_KEY_SWAPPED},
    Reason.STEP_FAILED: {FaultKind.DISK_FULL},
    Reason.NO_MODEL: {FaultKind.DISK_FULL, FaultKind.CREDIT_GONE},
    Reason.FETCH_FAILED: {
        FaultKind.HOST_VANISHES, FaultKind.HOST_KEY_SWAPPED, FaultKind.CONTRACT_ENDS, FaultKind.CREDIT_GONE,
        FaultKind.OUTBID
    },
}  # fmt: skip

Tally = Counter[tuple[str, str]]


class Storm:
    """One seeded run: its jobs, its deck of faults, and what became of them.

    Its installations rent on `demand` or by `bids`, all at the same account.
    """

    def __init__(
        self,
        seed: int,
        folder: Path,
        forge: StormForge,
        *,
        kinds: Sequence[FaultKind],
        installations: Sequence[str] = ("demand", "bids"),
    ) -> None:
        self._draw = random.Random(seed)
        self._installations = installations
        self._folder = folder
        self._forge = forge
        self._slowness = forge.slowness
        self._kinds = self._draw.sample(list(kinds), len(kinds))
        self._left = list(self._kinds)
        self._aims = {kind: self._draw.choice(_AIMS) for kind in kinds}
        self.tally: Tally = Counter()
        self.kills: Counter[tuple[str, str]] = Counter()

    def run(self, *, jobs: int, most_seconds: float) -> None:
        """Until every fault has struck, or the time is over; then the dust settles, and everything is checked."""
        settings = limits(self._slowness)
        dataset = a_tiny_dataset(self._folder / "dataset")
        with self._forge.simulator(self._folder / "simulator", credit_usd=50.0) as url, holding() as hold:
            stations = [
                hold(StormStation(self._folder / name, url, self._forge, **settings, **_RENTING[name]))
                for name in self._installations
            ]
            self._blow(stations, dataset, jobs=jobs, ends=time.monotonic() + most_seconds * self._slowness)
            self._calm(stations)
            for station in stations:
                station.check()
                check_reasons(station, slowness=self._slowness)
                self.kills += station.kills
            self._count(stations)

    def _blow(self, stations: list[StormStation], dataset: DatasetRef, *, jobs: int, ends: float) -> None:
        processes = {(station.home.name, role): 0 for station in stations for role in ("worker", "sweeper")}
        submitted = 0
        self._began = time.monotonic()
        while time.monotonic() < ends:
            self._strike_off(stations)
            if submitted >= jobs and not self._unmet(stations, before=time.time() - _SETTLED_SECONDS * self._slowness):
                break
            if submitted < jobs or sum(station.busy() for station in stations) < jobs:
                self._submit(stations[submitted % len(stations)], dataset, submitted)
                submitted += 1
            self._arm(stations)
            self._keep_going(stations, processes)
            self._pay(stations[0])
            time.sleep(self._draw.uniform(0.05, 0.3))
        stations[0].customer.http.delete("/simulator/faults")
        for station in stations:
            for role in ("worker", "sweeper"):
                if pid := processes[station.home.name, role]:
                    station.kill(pid, role)

    def _strike_off(self, stations: list[StormStation]) -> None:
        """Faults that have met a live rental are not armed again."""
        self._left = self._unmet(stations, before=math.inf)

    def _unmet(self, stations: list[StormStation], *, before: float) -> list[FaultKind]:
        """Faults without a strike before this time that met a live rental.

        A strike on a live rental may turn out to be too late: the visit that finds the machine gone dates its end by
        its own beginning.
        """
        spans = [span for station in stations for span in station.spans()]
        strikes = [strike for strike in stations[0].struck() if float(strike["at"]) < before]
        met = {strike["kind"] for strike in strikes if any(span.is_met_by(strike) for span in spans)}
        return [kind for kind in self._kinds if kind not in met]

    def _submit(self, station: StormStation, dataset: DatasetRef, number: int) -> None:
        seconds = _JOB_SECONDS * self._slowness
        station.submit(storm_job(f"job-{number}", dataset, journal=station.journal, steps=15, max_seconds=seconds))

    def _arm(self, stations: list[StormStation]) -> None:
        """Faults of requests are armed as they come; those of machines one by one, where something is going on."""
        customer = stations[0].customer
        armed = {fault["kind"] for fault in customer.http.get("/simulator/faults").json()["armed"]}
        for kind in self._left:
            if kind not in HAPPENING and kind not in armed and self._draw.random() < _ARMED_AT_A_LOOK:
                customer.arm(kind, operation=_AIMED.get(kind), seconds=_FAULT_SECONDS)
        if armed & HAPPENING:
            customer.http.delete("/simulator/faults")  # its machine is gone or down; the others are armed anew
        targets = [
            (kind, machine) for kind in self._left if kind in HAPPENING for machine in self._targets(kind, stations)
        ]
        if FaultKind.START_QUEUED in self._left:  # only what was stopped in its training is started again
            machines = [machine for station in stations for machine in station.machines_in([State.EXECUTING])]
            targets += [(FaultKind.CREDIT_GONE, machine) for machine in machines]
        if targets and self._draw.random() < _ARMED_AT_A_LOOK:
            kind, machine = self._draw.choice(targets)
            customer.arm(kind, instance_id=machine, seconds=_FAULT_SECONDS)

    def _targets(self, kind: FaultKind, stations: list[StormStation]) -> list[int]:
        """Machines that the fault may strike now; only one held by a bid can be outbid."""
        is_urgent = time.monotonic() > self._began + _PATIENCE_SECONDS * self._slowness
        where = [station for station in stations if kind is not FaultKind.OUTBID or station.home.name == "bids"]
        states = _ANYWHERE if is_urgent else self._aims[kind]
        return [machine for station in where for machine in station.machines_in(states)]

    def _keep_going(self, stations: list[StormStation], processes: dict[tuple[str, str], int]) -> None:
        """Somebody starts what died; now and then something is killed."""
        for station in stations:
            for role in ("worker", "sweeper"):
                pid = processes[station.home.name, role]
                if pid == 0 or not is_running(pid):
                    processes[station.home.name, role] = station.start(role)
                elif self._draw.random() < _KILLED_AT_A_LOOK:
                    station.kill(pid, role)

    def _pay(self, station: StormStation) -> None:
        if station.credit() < 1 and self._draw.random() < 0.3:
            station.pay(20)

    def _calm(self, stations: list[StormStation]) -> None:
        """Whole processes, no more faults, money in the account: everything comes to its end."""
        stations[0].pay(50)
        workers = [station.start("worker") for station in stations]
        for station, worker in zip(stations, workers, strict=True):
            station.until(partial(_has_left, worker), "the end of every job", seconds=120 * self._slowness)
        sweepers = [station.start("sweeper") for station in stations]
        for station, sweeper in zip(stations, sweepers, strict=True):
            station.until(partial(_all_gone, station), "the end of every machine", seconds=60 * self._slowness)
            station.leave(sweeper)

    def _count(self, stations: list[StormStation]) -> None:
        """Every strike that met a live rental, with the states of the jobs that it met."""
        for strike in stations[0].struck():
            met = ((station, span) for station in stations for span in station.spans() if span.is_met_by(strike))
            for state in {state_at(station, span.job_id, float(strike["at"])) for station, span in met}:
                self.tally[strike["kind"], state] += 1


def limits(slowness: float) -> dict[str, str]:
    """The settings of a station in a storm."""
    return {
        "STATIONMASTER_LIMITS__READY": str(_READY_SECONDS * slowness),
        "STATIONMASTER_LIMITS__TRANSFER": str(_TRANSFER_SECONDS * slowness),
        "STATIONMASTER_LIMITS__FETCH": str(_FETCH_SECONDS * slowness),
        "STATIONMASTER_LIMITS__CLOSING": str(_CLOSING_SECONDS * slowness),
        "STATIONMASTER_SWEEP__ABANDON_AFTER": str(_ABANDON_SECONDS * slowness),
    }


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


def check_reasons(station: StormStation, *, slowness: float) -> None:
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
        else:
            explained: set[str] = {*(_EXPLAINED_BY.get(job.reason, set()) & struck)}
            explained |= _by_the_clock(station, job, slowness)
            if job.reason is Reason.FETCH_FAILED:
                assert _outcome_at(station, job) >= _given_up_at(station, job, slowness), (
                    f"{job.id} lost its model too early\n{station.story()}"
                )
            assert explained, f"nothing explains {job.id}: {job.reason} {job.explanation}\n{station.story()}"


def _by_the_clock(station: StormStation, job: Job, slowness: float) -> set[str]:
    """What took longer than it may; a busy computer is enough for that."""
    if "the link carries only" in (job.explanation or ""):
        return {"slow"}
    limited = {
        Reason.MACHINE_NOT_READY: (State.PROVISIONING, _READY_SECONDS * slowness),
        Reason.TRANSFER_FAILED: (State.TRANSFERRING_DATA, _TRANSFER_SECONDS * slowness),
    }
    state, limit_seconds = limited.get(job.reason, (None, 0.0)) if job.reason else (None, 0.0)
    moves = [event for event in station.store.events.of_job(job.id) if event.kind == "state"]
    waited = [after.at - before.at for before, after in itertools.pairwise(moves) if before.payload["to"] == state]
    return {"slow"} if waited and waited[-1] >= limit_seconds else set()


def _given_up_at(station: StormStation, job: Job, slowness: float) -> float:
    """A machine with a model is destroyed once it has been parked for its time, and the job's limit is over."""
    parked = [event.at for event in station.store.events.of_job(job.id) if event.kind == "machine_parked"]
    return max(max(parked, default=math.inf) + _ABANDON_SECONDS * slowness, job.deadline_at or 0.0)


def _has_left(pid: int) -> bool:
    return not is_running(pid)


def _all_gone(station: StormStation) -> bool:
    return all(span.ends < math.inf for span in station.spans()) and not station.alive()


def state_at(station: StormStation, job_id: str, at: float) -> str:
    moves = [event for event in station.store.events.of_job(job_id) if event.kind == "state" and event.at <= at]
    return str(moves[-1].payload["to"]) if moves else State.QUEUED.value


def _outcome_at(station: StormStation, job: Job) -> float:
    return next(event.at for event in station.store.events.of_job(job.id) if event.kind == "outcome")
