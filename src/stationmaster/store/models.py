"""The catalogue of trained models."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from stationmaster.model import SINGLE_USER, Place, Registering, Registration, SamplePicture, TrainedModel
from stationmaster.store.bulk import upsert
from stationmaster.store.codec import known_fields
from stationmaster.store.engine import Database
from stationmaster.store.json_text import dumps, loads
from stationmaster.store.storable_text import is_storable
from stationmaster.store.tables import trained_models


class Models:
    def __init__(self, database: Database) -> None:
        self._database = database

    def listed(
        self, *, owner: str | None = None, limit: int = 1000, after: tuple[float, str] | None = None
    ) -> list[TrainedModel]:
        """Newest first: those of one owner, or all; after the one with this time and slug."""
        table = trained_models.c
        query = sa.select(trained_models).where(_owned_by(owner)).order_by(table.created_at.desc(), table.slug)
        if after is not None:
            at, slug = after
            query = query.where(sa.or_(table.created_at < at, sa.and_(table.created_at == at, table.slug > slug)))
        return self._found(query.limit(limit))

    def matching(self, reference: str, *, owner: str | None = None) -> list[TrainedModel]:
        """The model with this slug, else those of this job, else with this name, else whose slug starts with it, else
        whose job's id does.

        Only those of this owner, if one is given.
        """
        table = trained_models.c
        if not is_storable(reference):
            return []  # no stored text is like that, and a database may refuse it
        for condition in (
            table.slug == reference,
            table.job_id == reference,
            table.name == reference,
            table.slug.startswith(reference, autoescape=True),
            table.job_id.startswith(reference, autoescape=True),
        ):
            query = sa.select(trained_models).where(condition, _owned_by(owner))
            if found := self._found(query.order_by(table.created_at.desc())):
                return found
        return []

    def of_job(self, job_id: str) -> TrainedModel | None:
        found = self._found(sa.select(trained_models).where(trained_models.c.job_id == job_id))
        return found[0] if found else None

    def of_jobs(self, job_ids: Collection[str]) -> dict[str, TrainedModel]:
        """The models of those of the jobs that have one, by job id, in one query."""
        found = self._found(sa.select(trained_models).where(trained_models.c.job_id.in_(list(job_ids))))
        return {model.job_id: model for model in found}

    def to_register(self, *, limit: int = 20) -> list[TrainedModel]:
        """Models whose registration is due, the longest waiting first."""
        due = trained_models.c.register_at
        return self._found(sa.select(trained_models).where(due <= self._database.now).order_by(due).limit(limit))

    def count_to_register(self) -> int:
        query = sa.select(sa.func.count()).where(trained_models.c.register_at.is_not(None))
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def put(self, model: TrainedModel) -> None:
        """Write a model where no lease guards its job."""
        with self._database.write() as connection:
            put(connection, (model,))

    def remove(self, slug: str) -> None:
        with self._database.write() as connection:
            connection.execute(trained_models.delete().where(trained_models.c.slug == slug))

    def _found(self, query: sa.Select[Any]) -> list[TrainedModel]:
        with self._database.read() as connection:
            return [_from_row(row) for row in connection.execute(query).mappings()]


def _owned_by(owner: str | None) -> sa.ColumnElement[bool]:
    """That it belongs to this user; models of the single user have no owner."""
    if owner is not None and not is_storable(owner):
        return sa.false()
    return sa.true() if owner is None else sa.func.coalesce(trained_models.c.owner, SINGLE_USER) == owner


def put(connection: Connection, changed: Iterable[TrainedModel]) -> None:
    if rows := [model_to_row(model) for model in changed]:
        upsert(connection, trained_models, rows, key=("slug",))


def model_to_row(model: TrainedModel) -> dict[str, Any]:
    plain = {item.name: getattr(model, item.name) for item in dataclasses.fields(model)}
    registration = plain.pop("registration")
    return {
        **plain,
        "details": dumps(dict(model.details)),
        "places": dumps([dataclasses.asdict(place) for place in model.places]),
        "previews": dumps([dataclasses.asdict(preview) for preview in model.previews]),
        "registering": registration.state.value,
        "register_note": registration.note,
        "register_at": registration.due_at,
        "register_tries": registration.tries,
    }


def _from_row(row: RowMapping) -> TrainedModel:
    return known_fields(
        TrainedModel,
        {
            **row,
            "details": loads(row["details"]),
            "places": tuple(known_fields(Place, place) for place in loads(row["places"])),
            "previews": tuple(known_fields(SamplePicture, preview) for preview in loads(row["previews"])),
            "registration": Registration(
                state=Registering(row["registering"]),
                note=row["register_note"],
                due_at=row["register_at"],
                tries=row["register_tries"],
            ),
        },
    )
