"""Jobs for the CLI and the API: submit, look up, list, stop or cancel, request, remove."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.errors import AlreadyEnded, IllegalMove, NotFound
from stationmaster.model import (
    ADOPTED_PREFIX,
    REMOVED_MARK,
    SINGLE_USER,
    Desired,
    Job,
    JobSpec,
    Outcome,
    Progress,
    RentalState,
    Request,
    State,
)
from stationmaster.store import events, tables
from stationmaster.store.bulk import insert_if_absent
from stationmaster.store.codec import job_from_row, progress_to_text, spec_to_text
from stationmaster.store.costs import KINDS_OF_PAID_TIME
from stationmaster.store.engine import Database
from stationmaster.store.ownership import owned_by
from stationmaster.store.storable_text import is_storable
from stationmaster.store.tables import cost_lines, jobs, ledger_entries, removed_jobs, rentals
from stationmaster.store.wake import announce
from stationmaster.store.writes import NewEvent

_MAY_TRAIN = [state.value for state in (State.QUEUED, State.PROVISIONING, State.TRANSFERRING_DATA, State.EXECUTING)]
_FAILED = [outcome.value for outcome in (Outcome.FAILED, Outcome.FAILED_PROVISIONING)]
_STRENGTH = (Desired.RUN, Desired.STOP, Desired.CANCEL_KEEP, Desired.CANCEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    job: Job
    created: bool  # False: a job with this id was there already


#: Tables that outlive a removed job: the catalogue, the facts that later runs are compared with, and the keys of
#: submissions: a request that is repeated later must not make the job again.
_KEPT = (tables.trained_models, tables.past_runs, tables.submissions)


class Jobs:
    def __init__(self, database: Database) -> None:
        self._database = database

    # Run all the time: built once.

    @cached_property
    def _until_due(self) -> sa.Select[Any]:
        return _until_due_statement(self._database)

    @cached_property
    def _until_served_due(self) -> sa.Select[Any]:
        return _until_due_statement(self._database, is_served())

    def submit(self, spec: JobSpec) -> Submitted:
        """Queue a job. If the id exists already, return that job and change nothing."""
        with self._database.write() as connection:
            now = connection.execute(sa.select(self._database.now)).scalar_one()
            return enqueue(connection, spec, now=now)

    def get(self, job_id: str) -> Job:
        """The job with this id. Raises NotFound."""
        with self._database.read() as connection:
            job = _find(connection, job_id)
        if job is None:
            raise NotFound(f"there is no job {job_id}", hint="run `stationmaster jobs --all` to see them")
        return job

    def several(self, job_ids: Collection[str]) -> dict[str, Job]:
        """Those of the jobs that exist, by id."""
        query = sa.select(jobs).where(jobs.c.id.in_(sorted(filter(is_storable, job_ids))))
        with self._database.read() as connection:
            return {row["id"]: job_from_row(row) for row in connection.execute(query).mappings()}

    def matching(self, text: str, *, owner: str | None = None) -> list[Job]:
        """Jobs that `text` names: by id, else the newest of that name, else those whose id starts with it.

        With `owner`, only among the jobs of that user.
        """
        if not text or not is_storable(text):
            return []  # every id starts with "": an unset shell variable must not select the only job
        theirs = sa.true() if owner is None else owned_by(owner)
        exact = jobs.c.id == text
        begins = jobs.c.id.startswith(text, autoescape=True)
        named = jobs.c.name == text
        with self._database.read() as connection:
            for condition, limit in ((exact, 1), (named, 1), (begins, 10)):
                query = sa.select(jobs).where(condition, theirs).order_by(jobs.c.created_at.desc()).limit(limit)
                rows = connection.execute(query).mappings().all()
                if rows:
                    return [job_from_row(row) for row in rows]
        return []

    def listed(
        self,
        *,
        with_ended: bool,
        limit: int = 100,
        owner: str | None = None,
        state: State | None = None,
        after: tuple[float, str] | None = None,
    ) -> list[Job]:
        """Newest first; with `after`, those behind the job that was submitted then and has that id."""
        query = sa.select(jobs).order_by(jobs.c.created_at.desc(), jobs.c.id).limit(limit)
        if not with_ended:
            query = query.where(jobs.c.state != State.ENDED.value)
        if owner is not None:
            query = query.where(owned_by(owner))
        if state is not None:
            query = query.where(jobs.c.state == state.value)
        if after is not None:
            at, job_id = after
            query = query.where(jobs.c.created_at <= at, sa.or_(jobs.c.created_at < at, jobs.c.id > job_id))
        with self._database.read() as connection:
            return [job_from_row(row) for row in connection.execute(query).mappings()]

    def without_machine_before(self, job: Job) -> list[Job]:
        """Jobs submitted earlier for the same provider, which have no machine yet; oldest first."""
        has_machine = sa.exists().where(
            rentals.c.job_id == jobs.c.id,
            rentals.c.state.in_([RentalState.HELD.value, RentalState.RELEASING.value]),
        )
        query = (
            sa.select(jobs)
            .where(
                jobs.c.state.in_([State.QUEUED.value, State.PROVISIONING.value]),
                jobs.c.provider == job.spec.provider,
                sa.tuple_(jobs.c.created_at, jobs.c.id) < (job.created_at, job.id),
                ~has_machine,
            )
            .order_by(jobs.c.created_at, jobs.c.id)
        )
        with self._database.read() as connection:
            return [job_from_row(row) for row in connection.execute(query).mappings()]

    def of_dataset(self, sha256: str) -> list[Job]:
        """Jobs that use this packed dataset, wherever it is stored."""
        query = sa.select(jobs).where(jobs.c.spec.contains(sha256, autoescape=True))
        with self._database.read() as connection:
            found = [job_from_row(row) for row in connection.execute(query).mappings()]
        return [job for job in found if job.spec.dataset.sha256 == sha256]

    def desire(self, job_id: str, desired: Desired) -> Job:
        """Set what the user wants; no later write and no weaker wish undoes it. Raises NotFound, AlreadyEnded."""
        stronger = [wish.value for wish in _STRENGTH[_STRENGTH.index(desired) :]]
        wanted = sa.case((jobs.c.desired.in_(stronger), jobs.c.desired), else_=desired.value)
        change = (
            jobs.update()
            .where(jobs.c.id == job_id, jobs.c.outcome.is_(None))
            .values(desired=wanted, desired_seq=jobs.c.desired_seq + 1, version=jobs.c.version + 1)
            .returning(jobs, self._database.now.label("now"))
        )
        with self._database.write() as connection:
            row = connection.execute(change).mappings().one_or_none()
            if row is not None:
                event = NewEvent(kind="desired", payload={"desired": desired.value})
                events.append(connection, events.rows(job_id, (event,), version=row["version"], now=row["now"]))
                announce(connection)
                return job_from_row(row)
        job = self.get(job_id)
        raise AlreadyEnded(f"job {job_id} is already {job.outcome}")

    def ask(self, job_id: str, request: Request) -> Job:
        """Request a checkpoint or samples from the training, now or once it runs.

        Raises NotFound, AlreadyEnded, and IllegalMove if the training is over or about to end.
        """
        # Wake a worker only if a training runs: in other states it could not do anything.
        woken = jobs.c.desired_seq + sa.case((jobs.c.state == State.EXECUTING.value, 1), else_=0)
        count = jobs.c.saves_asked if request is Request.SAVE else jobs.c.samples_asked
        change = (
            jobs.update()
            .where(jobs.c.id == job_id, jobs.c.state.in_(_MAY_TRAIN), jobs.c.desired == Desired.RUN.value)
            .values({count: count + 1, jobs.c.desired_seq: woken, jobs.c.version: jobs.c.version + 1})
            .returning(jobs, self._database.now.label("now"))
        )
        with self._database.write() as connection:
            row = connection.execute(change).mappings().one_or_none()
            if row is not None:
                job = job_from_row(row)
                event = NewEvent(kind="asked", payload={"for": request.value, "number": job.times_asked(request)})
                events.append(connection, events.rows(job_id, (event,), version=row["version"], now=row["now"]))
                announce(connection)
                return job
        job = self.get(job_id)
        if job.outcome is not None:
            raise AlreadyEnded(f"job {job_id} is already {job.outcome}")
        if job.desired is not Desired.RUN:
            raise IllegalMove(
                f"job {job_id} is already stopping", hint=f"run `stationmaster show {job_id}` to see its progress"
            )
        raise IllegalMove(
            f"the training of job {job_id} is over", hint=f"run `stationmaster show {job_id}` to see its progress"
        )

    def remove(self, job_id: str) -> None:
        """Delete an ended job with everything but its costs. Raises NotFound, IllegalMove."""
        with self._database.write() as connection:
            job = _find(connection, job_id)
            if job is None:
                raise NotFound(f"there is no job {job_id}")
            alive = sa.select(rentals.c.label).where(rentals.c.job_id == job_id, rentals.c.state != RentalState.GONE)
            if job.state is not State.ENDED or connection.execute(alive).first() is not None:
                raise IllegalMove(
                    f"job {job_id} has not ended: it is {job.state}",
                    hint=f"run `stationmaster cancel {job_id}` first",
                )
            now = connection.execute(sa.select(self._database.now)).scalar_one()
            _put_costs_aside(connection, job, now=now)
            for table in tables.metadata.sorted_tables:
                if "job_id" in table.c and table not in _KEPT:
                    connection.execute(table.delete().where(table.c.job_id == job_id))
            connection.execute(jobs.delete().where(jobs.c.id == job_id))

    def count_needing_a_worker(self) -> int:
        """Number of jobs that have not ended, plus machines that may still bill."""
        unfinished = sa.select(sa.func.count()).select_from(jobs).where(jobs.c.state != State.ENDED.value)
        billing = sa.select(sa.func.count()).select_from(rentals).where(rentals.c.state != RentalState.GONE.value)
        with self._database.read() as connection:
            return int(connection.execute(unfinished).scalar_one()) + int(connection.execute(billing).scalar_one())

    def count_failed_since(self, start: float, *, owner: str | None = None) -> int:
        """Number of jobs that failed then or later, also of those whose machine is still being released."""
        query = (
            sa.select(sa.func.count())
            .select_from(jobs)
            .where(jobs.c.outcome.in_(_FAILED), sa.or_(jobs.c.ended_at.is_(None), jobs.c.ended_at >= start))
        )
        if owner is not None:
            query = query.where(owned_by(owner))
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def unknown_states(self) -> list[tuple[str, str]]:
        """(job, state) pairs whose state this version does not know; it leaves these jobs alone, and should say so."""
        query = sa.select(jobs.c.id, jobs.c.state).where(jobs.c.state.not_in([state.value for state in State]))
        with self._database.read() as connection:
            return [(row.id, row.state) for row in connection.execute(query)]

    def seconds_until_due(
        self,
        *,
        states: Sequence[State] = tuple(State),
        providers: Collection[str] | None = None,
        excluded_providers: Collection[str] = (),
    ) -> float | None:
        """Seconds until the next claimable job is due; None if none will become due without a change."""
        values = {"b_states": [str(state) for state in states], "b_excluded": list(excluded_providers)}
        if providers is not None:
            values["b_served"] = list(providers)
        with self._database.read() as connection:
            query = self._until_due if providers is None else self._until_served_due
            value = connection.execute(query, values).scalar()
        return None if value is None else max(0.0, float(value))

    def of_other_providers(self, providers: Collection[str]) -> list[tuple[str, str]]:
        """(job, provider) of every job that has not ended and whose provider is not one of these."""
        with self._database.read() as connection:
            rows = connection.execute(_OF_OTHER_PROVIDERS, {"b_served": list(providers)})
            return [(row.id, row.provider) for row in rows]


def enqueue(connection: Connection, spec: JobSpec, *, now: float) -> Submitted:
    """Queue a job in the caller's transaction, unless one with its id exists."""
    created = insert_if_absent(connection, jobs, _new_row(spec, now))
    if created:
        _refuse_if_charged(connection, spec.id)
        payload: dict[str, Any] = {"name": spec.name, "recipe": spec.recipe, "provider": spec.provider}
        if spec.applied:
            payload |= {"retry_of": spec.retry_of, "changes": [one.change for one in spec.applied]}
        event = NewEvent(kind="submitted", payload=payload)
        events.append(connection, events.rows(spec.id, (event,), version=1, now=now))
        announce(connection)
    job = _find(connection, spec.id)
    assert job is not None
    return Submitted(job=job, created=created)


def is_served() -> sa.ColumnElement[bool]:
    """Whether the job's provider is one of `b_served`; a training that was adopted runs on any host."""
    served = jobs.c.provider.in_(sa.bindparam("b_served", expanding=True))
    return sa.or_(served, jobs.c.provider.startswith(ADOPTED_PREFIX))


_OF_OTHER_PROVIDERS = sa.select(jobs.c.id, jobs.c.provider).where(
    jobs.c.due_at.is_not(None), jobs.c.state != State.ENDED.value, sa.not_(is_served())
)


def _until_due_statement(database: Database, *further: sa.ColumnElement[bool]) -> sa.Select[Any]:
    free_at = sa.func.coalesce(jobs.c.lease_until, jobs.c.due_at)
    later = sa.case((free_at > jobs.c.due_at, free_at), else_=jobs.c.due_at)
    return sa.select(sa.func.min(later) - database.now).where(
        jobs.c.due_at.is_not(None),
        jobs.c.state.in_(sa.bindparam("b_states", expanding=True)),
        jobs.c.provider.not_in(sa.bindparam("b_excluded", expanding=True)),
        *further,
    )


def _put_costs_aside(connection: Connection, job: Job, *, now: float) -> None:
    """Keep a removed job's cost lines, rentals and paid-time events, under an id that no later job can have.

    The rentals stay because the provider's bill, which comes later, is matched by them.
    """
    aside = f"{REMOVED_MARK}{job.created_at:.0f}"
    moved = connection.execute(
        cost_lines.update()
        .where(cost_lines.c.job_id == job.id)
        .values(rental_label=cost_lines.c.rental_label + aside, job_id=job.id + aside)
    )
    if not moved.rowcount:
        return
    connection.execute(
        rentals.update().where(rentals.c.job_id == job.id).values(label=rentals.c.label + aside, job_id=job.id + aside)
    )
    paid_time = (tables.events.c.job_id == job.id, tables.events.c.kind.in_(KINDS_OF_PAID_TIME))
    connection.execute(tables.events.update().where(*paid_time).values(job_id=job.id + aside))
    owner = job.spec.owner or SINGLE_USER
    connection.execute(removed_jobs.insert().values(id=job.id + aside, owner=owner, at=now))


def _refuse_if_charged(connection: Connection, job_id: str) -> None:
    """Raise IllegalMove if the id has ledger entries: they identify an attempt by job id and are never deleted."""
    if connection.execute(sa.select(ledger_entries.c.seq).where(ledger_entries.c.job == job_id).limit(1)).first():
        raise IllegalMove(f"the id {job_id} belonged to a removed job that was charged", hint="choose another --id")


def _find(connection: Connection, job_id: str) -> Job | None:
    if not is_storable(job_id):
        return None
    row = connection.execute(sa.select(jobs).where(jobs.c.id == job_id)).mappings().one_or_none()
    return None if row is None else job_from_row(row)


def _new_row(spec: JobSpec, now: float) -> dict[str, object]:
    return {
        "id": spec.id,
        "name": spec.name,
        "provider": spec.provider,
        "owner": spec.owner,
        "retry_of": spec.retry_of,
        "spec": spec_to_text(spec),
        "created_at": now,
        "state": State.QUEUED.value,
        "state_since": now,
        "version": 1,
        "desired": Desired.RUN.value,
        "desired_seq": 0,
        "seen_seq": 0,
        "attempt": 0,
        "failed_before_login": 0,
        "failed_after_login": 0,
        "due_at": now,
        "progress": progress_to_text(Progress()),
        "memory": "{}",
        "log_bytes": 0,
        "lease_token": 0,
    }
