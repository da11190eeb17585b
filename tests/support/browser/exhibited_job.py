"""One training of the exhibition, written into a store: its row, events, log, measured values, files and costs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path

from PIL import Image, ImageFilter

from stationmaster.model import (
    Alert,
    Checkpoint,
    CostLine,
    DatasetRef,
    Job,
    Label,
    LogChunk,
    Offer,
    Progress,
    Rental,
    RentalState,
    State,
)
from stationmaster.model.attempt import Ending, ModelFile, RentedMachine, SavedModel, Transfer, Watching
from stationmaster.money import MicroDollars, cost
from stationmaster.series.blocks import block_of
from stationmaster.station.local.station import LocalStation
from stationmaster.store import checkpoints, events, logs, readings, series
from stationmaster.store.attempt_codec import attempt_to_json
from stationmaster.store.codec import progress_to_text
from stationmaster.store.json_text import dumps
from stationmaster.store.store import Store
from stationmaster.store.tables import events as event_rows
from stationmaster.store.writes import NewEvent
from tests.support.browser.exhibited_history import (
    AFTER_TRAINING,
    STALL,
    asked_at,
    checkpoint_path,
    history_of,
    sample_path,
)
from tests.support.browser.exhibited_models import model_of, spec_of
from tests.support.browser.exhibited_run import Run, log_of, losses_of, readings_of, run_of, tables_of
from tests.support.browser.exhibits import PROMPTS, Exhibit
from tests.support.jobs.stored_jobs import change_row

_MODEL_BYTES = 171_969_408
_KEPT_CHECKPOINTS = 4
_FAR = 30 * 86_400.0


@dataclass(kw_only=True)
class Hanging:
    """One training on its way into the store."""

    station: LocalStation
    exhibit: Exhibit
    now: float
    instance: str | None
    run: Run = field(init=False)

    def __post_init__(self) -> None:
        self.run = run_of(self.exhibit, now=self.now)

    @property
    def store(self) -> Store:
        return self.station.store

    @property
    def label(self) -> str:
        return str(Label(installation=self.store.installation_id, job=self.exhibit.id, attempt=1))

    @property
    def folder(self) -> Path:
        return self.station.settings.home / "jobs" / self.exhibit.id

    def hang(self, dataset: DatasetRef, pictures: tuple[Path, ...]) -> None:
        exhibit = self.exhibit
        self.store.jobs.submit(spec_of(exhibit, dataset))
        files = self._files(pictures) if exhibit.done else []
        with self.store.database.write() as connection:
            if exhibit.done:
                text = log_of(self.run).encode()
                chunk = LogChunk(attempt=1, stream=self._stream(), start=0, end=len(text), data=text)
                made = logs.rows(exhibit.id, [chunk], log_bytes=len(text), cap_bytes=1 << 30, now=self.run.end)
                logs.append(connection, made)
                readings.append(connection, readings.rows(exhibit.id, readings_of(self.run)))
                blocks = [block_of(table, attempt=1) for table in tables_of(self.run)]
                series.append(connection, series.rows(exhibit.id, blocks, series_bytes=0, cap_bytes=1 << 30))
            checkpoints.put(connection, checkpoints.rows_of(exhibit.id, files))
        version = self._write_history()
        self._write_row(version)
        self._write_rental()
        if exhibit.places:
            previews = [file for file in files if file.kind == "sample"][-4:]
            self.store.models.put(model_of(self.store.jobs.get(exhibit.id), exhibit, previews, now=self._ended_at()))
        if exhibit.outcome is not None:
            self.station.analyses.of_job(exhibit.id, again=True)
        if exhibit.stuck_for:
            message = f"stalled: {STALL['reason']} (will be stopped in 15 min unless progress resumes)"
            self.store.alerts.raise_without_lease(Alert(kind="stall", job_id=exhibit.id, message=message))

    def _stream(self) -> str:
        return {"flux-lora@2": "1.0", "sdxl-lora@2": "1.0"}.get(self.exhibit.recipe, "0.0")

    def _ended_at(self) -> float:
        return self.run.end + AFTER_TRAINING

    def _model_path(self) -> Path:
        return self.folder / checkpoint_path(self.exhibit, None)

    def _files(self, pictures: tuple[Path, ...]) -> list[Checkpoint]:
        exhibit, found = self.exhibit, list[Checkpoint]()
        steps: list[int | None] = list(range(exhibit.save_every, exhibit.done + 1, exhibit.save_every))
        kept = steps[-_KEPT_CHECKPOINTS:] + ([None] if exhibit.places else [])
        for step in kept if exhibit.outcome is None or exhibit.places else []:
            path = checkpoint_path(exhibit, step)
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            with (self.folder / path).open("wb") as file:
                file.truncate(_MODEL_BYTES)  # sparse: it has the size of a model and takes no room
            found.append(self._file(path, "checkpoint", step or exhibit.done, _MODEL_BYTES, _made_up_hash(path)))
        if not exhibit.has_pictures:
            return found
        prompts = len(PROMPTS.splitlines())
        for step in range(exhibit.sample_every, exhibit.done + 1, exhibit.sample_every):
            for number in range(prompts):
                path = sample_path(exhibit, step, number)
                place = self.folder / path
                place.parent.mkdir(parents=True, exist_ok=True)
                _write_sample(pictures[(3 * number + len(exhibit.id)) % len(pictures)], place, step / exhibit.steps)
                data = place.read_bytes()
                found.append(self._file(path, "sample", step, len(data), hashlib.sha256(data).hexdigest()))
        return found

    def _file(self, path: str, kind: str, step: int, size: int, sha256: str) -> Checkpoint:
        return Checkpoint(
            attempt=1,
            path=path,
            kind=kind,
            size=size,
            step=step,
            sha256=sha256,
            location=str(self.folder / path),
            verified_at=min(self.now, self.run.end + 35),
        )

    def _write_history(self) -> int:
        """The job's version afterwards."""
        exhibit, instance = self.exhibit, self.instance or "30007012"
        happened = history_of(
            exhibit,
            self.run,
            label=self.label,
            instance=instance,
            asked=asked_at(exhibit, now=self.now),
            model=str(self._model_path()),
        )
        with self.store.database.write() as connection:
            connection.execute(event_rows.delete().where(event_rows.c.job_id == exhibit.id))
            for version, (at, kind, payload) in enumerate(happened, start=1):
                made = events.rows(exhibit.id, [NewEvent(kind=kind, payload=payload)], version=version, now=at)
                events.append(connection, made)
        return len(happened)

    def _write_row(self, version: int) -> None:
        exhibit, asked = self.exhibit, asked_at(self.exhibit, now=self.now)
        is_over = exhibit.outcome is not None
        job = self._with_attempt(self.store.jobs.get(exhibit.id))
        since = self._ended_at() if is_over else self.run.begin if exhibit.done else asked + 92
        change_row(
            self.store,
            exhibit.id,
            created_at=asked,
            state=exhibit.state.value,
            state_since=min(since, self.now),
            version=version,
            outcome=exhibit.outcome.value if exhibit.outcome else None,
            reason=exhibit.reason.value if exhibit.reason else None,
            explanation=exhibit.explanation,
            attempt=1,
            progress=progress_to_text(self._progress()),
            memory=dumps(attempt_to_json(job)),
            ended_at=self._ended_at() if is_over else None,
            deadline_at=None if is_over else self.now + 2 * 3600,
            due_at=None if is_over else self.now + _FAR,
            lease_owner=None if is_over else "exhibition",
            lease_until=None if is_over else self.now + _FAR,
            log_bytes=len(log_of(self.run)) if exhibit.done else 0,
        )

    def _with_attempt(self, job: Job) -> Job:
        exhibit = self.exhibit
        if exhibit.state is State.PROVISIONING:
            return job
        machine = RentedMachine(label=self.label, gpus=exhibit.card.name)
        if exhibit.state is State.TRANSFERRING_DATA:
            sent = Transfer(way="sending", bytes=26_700_000, total=41_800_000, bytes_per_second=2.1e6, eta_seconds=7.0)
            return replace(job, machine=replace(machine, transfer=sent))
        model = SavedModel()
        if exhibit.places:
            path = checkpoint_path(exhibit, None)
            file = ModelFile(name=Path(path).name, sha256=_made_up_hash(path), size=_MODEL_BYTES, path=path)
            model = SavedModel(address=str(self._model_path()), step=exhibit.done, attempt=1, file=file)
        peak = [exhibit.card.gib * exhibit.memory, exhibit.card.gib, 0]
        busy, used = 0.0 if exhibit.stuck_for else 97.0, 1024 * exhibit.card.gib * (exhibit.memory - 0.03)
        newest = [self.now, busy, round(used), round(1024 * exhibit.card.gib)]
        vitals = {"memory": {"platform": "discrete", "gpu": peak}, "gpus": [[newest]]}
        watching = Watching(trained=True, vitals=vitals, steps={"train": "running:1"})
        return replace(
            job, machine=machine, watching=watching, model=model, ending=Ending(analysed=exhibit.outcome is not None)
        )

    def _progress(self) -> Progress:
        exhibit = self.exhibit
        if not exhibit.done:
            return Progress(total_steps=exhibit.parameters.get("steps"))
        losses, left = losses_of(exhibit), (exhibit.steps - exhibit.done) / exhibit.pace
        return Progress(
            step=exhibit.done,
            total_steps=exhibit.steps,
            loss=round(losses[-1], 4),
            first_loss=round(losses[0], 4),
            learning_rate=1e-4,
            steps_per_second=0.0 if exhibit.stuck_for else exhibit.pace,
            eta_seconds=None if exhibit.outcome is not None or exhibit.stuck_for else left,
            phase="training" if exhibit.outcome is None else "finished",
            active_step="train" if exhibit.outcome is None else None,
            at=self.run.steps[-1][1],
        )

    def _write_rental(self) -> None:
        exhibit, asked = self.exhibit, asked_at(self.exhibit, now=self.now)
        if exhibit.state is State.PROVISIONING:
            return
        gone = self.run.end + 105 if exhibit.outcome is not None else None
        offer = Offer(
            id=f"o-{exhibit.id}",
            provider="simulator",
            price_per_hour=exhibit.card.price,
            gpu=exhibit.card.name,
            gpus=1,
            vram_gib=exhibit.card.gib,
            region=exhibit.card.region,
            reliability=0.994,
        )
        rental = Rental(
            label=self.label,
            job_id=exhibit.id,
            attempt=1,
            provider="simulator",
            state=RentalState.GONE if gone else RentalState.HELD,
            account="simulator",
            provider_id=self.instance or f"3000{len(exhibit.id)}{int(exhibit.began) % 1000:03}",
            offer=offer,
            requested_at=asked + 2,
            create_sent_at=asked + 2,
            held_at=asked + 21,
            gone_at=gone,
        )
        self.store.rentals.put_without_lease(rental)
        line = CostLine(
            rental_label=self.label,
            job_id=exhibit.id,
            kind="gpu",
            rate_per_hour=exhibit.card.price,
            started_at=asked + 21,
            ended_at=gone,
            amount=MicroDollars(0) if gone is None else cost(exhibit.card.price, gone - asked - 21),
            source="estimate" if gone is None else "provider",
        )
        self.store.costs.put_without_lease(line)


def _write_sample(picture: Path, target: Path, progress: float) -> None:
    """What the training makes of a prompt: the less it has learnt, the less can be seen."""
    with Image.open(picture) as opened:
        clear = opened.convert("RGB")
    blurred = clear.filter(ImageFilter.GaussianBlur(1 + 16 * (1 - progress) ** 2))
    grey = Image.new("RGB", clear.size, (128, 124, 120))
    Image.blend(grey, blurred, 0.35 + 0.65 * progress).save(target, quality=86)


def _made_up_hash(path: str) -> str:
    return hashlib.sha256(path.encode()).hexdigest()
