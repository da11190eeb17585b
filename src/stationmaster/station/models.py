"""The catalogue of trained models, with their locations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from stationmaster.model import TrainedModel
from stationmaster.station.stored_file import Progress, StoredFile

ModelCursor = tuple[float, str]
"""The time of creation and the slug of a model."""


class Models(Protocol):
    def listed(
        self, *, owner: str | None = None, limit: int = 1000, after: ModelCursor | None = None
    ) -> Sequence[TrainedModel]:
        """Newest first: those of one owner, or all. `after`: only those behind this one in the list."""

    def find(self, reference: str, *, owner: str | None = None) -> TrainedModel:
        """The model with this slug, beginning of a slug, name or job; only one of this owner. Raises NotFound."""

    def publish(self, reference: str) -> TrainedModel:
        """Publish a local model to the Hub, with samples and card; files already there are not uploaded again."""

    def file(self, reference: str) -> StoredFile:
        """The model's weights, from the nearest of its locations. Raises NotFound, DeliveryError, TransferFailed."""

    def download(self, reference: str, target: Path, *, progress: Progress | None = None) -> Path:
        """Copy a model to a folder, from any of its locations, and verify it.

        Raises NotFound, DeliveryError, TransferFailed, and UserError for a folder that is not writable.
        """
