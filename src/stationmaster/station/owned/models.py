"""The models of a user's own jobs; they stay theirs when the job is removed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stationmaster.model import Caller, Right, TrainedModel
from stationmaster.station.models import ModelCursor, Models
from stationmaster.station.owned.rights import require
from stationmaster.station.stored_file import Progress, StoredFile


class OwnedModels:
    def __init__(self, caller: Caller, models: Models) -> None:
        self._caller = caller
        self._all = models

    def listed(
        self, *, owner: str | None = None, limit: int = 1000, after: ModelCursor | None = None
    ) -> Sequence[TrainedModel]:
        if owner not in (None, self._caller.user):
            return []
        return self._all.listed(owner=self._caller.user, limit=limit, after=after)

    def find(self, reference: str, *, owner: str | None = None) -> TrainedModel:
        return self._all.find(reference, owner=self._caller.user)

    def publish(self, reference: str) -> TrainedModel:
        require(self._caller, Right.TRAIN)
        return self._all.publish(self._own(reference))

    def file(self, reference: str) -> StoredFile:
        return self._all.file(self._own(reference))

    def download(self, reference: str, target: Path, *, progress: Progress | None = None) -> Path:
        return self._all.download(self._own(reference), target, progress=progress)

    def _own(self, reference: str) -> str:
        """The slug, which is unique: a name or a beginning may also be another's."""
        return self.find(reference).slug
