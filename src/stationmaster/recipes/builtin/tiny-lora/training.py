"""The training itself: load, train, save, sample, and stop when asked; printed as ai-toolkit prints it."""

from __future__ import annotations

import dataclasses
import functools
import io
import json
import signal
import time
import traceback
from pathlib import Path
from types import FrameType
from typing import Any

import checkpoints
import numpy as np
from adapter import BASE_NAME, PATCH, Adapter
from batches import Batches, OwnBatches, Wanted
from dataset import Dataset, find_images, load_dataset
from faults import Fault
from memory import activations, filled
from moving_average import MovingAverage
from progress import Bar, say
from recording import Recording, start_recording

_RULE = "=" * 40
_MOST_SAMPLES = 4


@dataclasses.dataclass(frozen=True)
class Settings:
    """What the command line said."""

    dataset: Path
    output: Path
    name: str
    trigger: str
    steps: int
    seconds_per_step: float
    rank: int
    learning_rate: float
    batch_size: int
    save_every: int
    sample_every: int
    keep_saves: int
    resolution: int
    seed: int
    optimizer: str
    workers: int
    worker_memory_mb: int
    ema: bool
    model_memory_mb: int
    picture_memory_mb: float
    checkpoint_mb: int
    resume: Path | None
    fault: str
    fault_at: int
    fault_tries: int


class Requests:
    """Notes the signals that ask for an end, a checkpoint or samples; the training looks at them between two steps."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._save = self._sample = False
        signal.signal(signal.SIGUSR1, self._note_save)
        signal.signal(signal.SIGUSR2, self._note_sample)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note)

    def asked(self) -> bool:
        return self.signal is not None

    def exit_status(self) -> int:
        """What a shell shows for a process that this signal ended."""
        return 128 + (self.signal or 0)

    def take_save(self) -> bool:
        """Whether a checkpoint is asked for; each is taken once."""
        asked, self._save = self._save, False
        return asked

    def take_sample(self) -> bool:
        """Whether samples are asked for; each time is taken once."""
        asked, self._sample = self._sample, False
        return asked

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.signal = number

    def _note_save(self, _number: int, _frame: FrameType | None) -> None:
        self._save = True

    def _note_sample(self, _number: int, _frame: FrameType | None) -> None:
        self._sample = True


def run(settings: Settings) -> int:
    """Train as `settings` say; returns the exit status."""
    say("Running 1 job")
    stop = Requests()
    recording = start_recording(_config(settings), total_steps=settings.steps)
    try:
        Training(settings, stop, recording).run()
    except Exception as error:  # noqa: BLE001 - the outermost call: the log must end with the reason
        if isinstance(error, MemoryError):
            recording.event("oom_error", batch_size=settings.batch_size, message=str(error))
        say(f"Error running job: {error}")
        _say_result(completed=0, failed=1)
        traceback.print_exc()
        return 1
    finally:
        recording.event("training_end")
        recording.close()
    if stop.asked():
        say(f"{_RULE}\nJob stopped\n{_RULE}")
        return stop.exit_status()
    _say_result(completed=1, failed=0)
    return 0


def recompute_loss(adapter_path: Path, dataset_folder: Path) -> tuple[float, float]:
    """The loss of a saved adapter over the whole dataset, computed anew, and the one stored in its header."""
    saved = checkpoints.read(adapter_path)
    config = json.loads(saved.metadata["config"])
    images = find_images(dataset_folder)
    dataset = load_dataset(
        images, resolution=config["resolution"], trigger=saved.metadata["trigger"], seen=lambda: None
    )
    return dataset.loss(Adapter.from_tensors(saved.tensors, saved.step)), float(saved.metadata["loss"])


class Training:
    """One run over one dataset."""

    def __init__(self, settings: Settings, stop: Requests, recording: Recording) -> None:
        self.settings, self.stop, self.recording = settings, stop, recording
        self.samples = settings.output / "samples"
        self.samples.mkdir(parents=True, exist_ok=True)
        checkpoints.remove_partial(settings.output)
        checkpoints.remove_partial(self.samples)
        record = settings.output / (f".{settings.name}.faults")
        self.fault = Fault(settings.fault, settings.fault_at, settings.fault_tries, record)

    def run(self) -> None:
        settings = self.settings
        self.adapter = self._first_adapter()
        self.frozen = filled(settings.model_memory_mb)
        self.dataset = self._load_dataset()
        if self.adapter.step == 0:
            say("Generating baseline samples before training")
            self._sample()
        self.bar = Bar(settings.steps, settings.name, initial=min(self.adapter.step, settings.steps))
        self.batches = self._open_batches()
        try:
            self.recording.event("training_start", step=self.adapter.step, batch_size=settings.batch_size)
            while self.adapter.step < settings.steps and not self.stop.asked():
                self._step()
        finally:
            self.batches.close()
        self.bar.close()
        if not self.stop.asked():
            finished = self.adapter if self.average is None else self.average.adapter(self.adapter)
            self._save(settings.output / (settings.name + ".safetensors"), finished)
            self._sample()
        elif self.adapter.step and not self._numbered().exists():
            self._save(self._numbered(), self.adapter)

    def _first_adapter(self) -> Adapter:
        """A new adapter, or the furthest of what was given and what an earlier try left in the output folder."""
        settings = self.settings
        say(f"create LoRA network. base dim (rank): {settings.rank}, alpha: {settings.rank}")
        given = checkpoints.read(settings.resume) if settings.resume else None
        if given and self._config(given) != self._own_config():
            raise ValueError(f"{given.path} was trained as {self._config(given)}, not {self._own_config()}")
        left = checkpoints.newest(settings.output, settings.name)
        if left and self._config(left) != self._own_config():
            say(f"Not resuming from {left.path}: it was trained with other settings")
            left = None
        found = max((each for each in (given, left) if each), key=lambda each: each.step, default=None)
        self.average: MovingAverage | None = None
        self.resumed = found.tensors if found else {}
        if found is None:
            adapter = Adapter.new(settings.rank, settings.seed)
        else:
            say(f"#### IMPORTANT RESUMING FROM {found.path} ####")
            say(f"Found step {found.step} in metadata, starting from there")
            adapter = Adapter.from_tensors(found.tensors, found.step)
        adapter.optimizer = settings.optimizer
        return adapter

    def _own_config(self) -> dict[str, Any]:
        side = max(PATCH, self.settings.resolution // PATCH * PATCH)
        return {"base": BASE_NAME, "rank": self.settings.rank, "resolution": side}

    @staticmethod
    def _config(saved: checkpoints.Checkpoint) -> dict[str, Any]:
        return dict(json.loads(saved.metadata.get("config", "{}")))

    def _load_dataset(self) -> Dataset:
        settings = self.settings
        say(f"Dataset: {settings.dataset}")
        say("  -  Preprocessing image dimensions")
        self.images = images = find_images(settings.dataset)
        say(f"  -  Found {len(images)} images")
        say(f"Caching latents for {settings.dataset}")
        bar = Bar(len(images), "Caching latents")
        dataset = load_dataset(
            images, resolution=settings.resolution, trigger=settings.trigger, seen=lambda: bar.update()
        )
        bar.close()
        say(f"Bucket sizes for {settings.dataset}:")
        say(f"{dataset.resolution}x{dataset.resolution}: {len(dataset)} files")
        say("1 buckets made")
        return dataset

    def _open_batches(self) -> Batches:
        settings = self.settings
        wanted = Wanted(size=settings.batch_size, seed=settings.seed, steps=settings.steps)
        if not settings.workers:
            return OwnBatches(self.dataset, wanted)
        from loader import WorkerBatches  # multiprocessing is slow to import, and most runs have no workers

        load = functools.partial(
            load_dataset, self.images, resolution=settings.resolution, trigger=settings.trigger, seen=_nothing
        )
        return WorkerBatches(load, wanted, workers=settings.workers, keep_mb=settings.worker_memory_mb)

    def _step(self) -> None:
        settings, step = self.settings, self.adapter.step + 1
        began = time.monotonic()
        self.fault.before_step(step, self.stop)
        if self.stop.asked():
            return
        patches, captions = self.batches.batch(step)
        pictures = min(settings.batch_size, len(self.dataset))
        with np.errstate(all="ignore"), activations(pictures, settings.picture_memory_mb):
            loss = self.adapter.train(self.fault.spoil(patches, step), captions, settings.learning_rate)
        self.recording.step(
            step,
            loss=loss,
            lr=settings.learning_rate,
            grad_norm=self.adapter.gradient_norm,
            batch_size=pictures,
        )
        self._follow()
        self._show(loss)
        self._save_and_sample_if_due()
        self._rest(began + self.fault.pace(settings.seconds_per_step, step))

    def _follow(self) -> None:
        """Bring the moving average up to date, if there is to be one; its copy of the weights is made here at first."""
        if not self.settings.ema:
            return
        if self.average is None:
            self.average = MovingAverage(self.adapter, self.frozen, self.resumed)
        self.average.follow(self.adapter)

    def _show(self, loss: float) -> None:
        if not np.isfinite(loss):
            say("loss is nan")
            loss = 0.0
        self.bar.show(f"lr: {self.settings.learning_rate:.1e} loss: {loss:.3e}")
        self.bar.update()

    def _save_and_sample_if_due(self) -> None:
        step = self.adapter.step
        saving = self.stop.take_save() or step % self.settings.save_every == 0
        sampling = self.stop.take_sample() or step % self.settings.sample_every == 0
        if step == self.settings.steps or not (saving or sampling):
            return  # after the last step the final save and its samples follow
        self.bar.pause()
        if saving:
            self._save(self._numbered(), self.adapter)
            self._remove_old_saves()
        if sampling:
            self._sample()
        self.bar.go_on()

    def _rest(self, until: float) -> None:
        """Wait for the step's time to pass, in small parts so that a stop is noticed."""
        while not self.stop.asked() and (left := until - time.monotonic()) > 0:
            time.sleep(min(0.05, left))

    def _numbered(self) -> Path:
        return self.settings.output / f"{self.settings.name}_{self.adapter.step:09d}.safetensors"

    def _save(self, path: Path, adapter: Adapter) -> None:
        step = adapter.step
        say(f"\nSaving at step {step}")
        self.recording.event("save_start", step=step)
        with np.errstate(all="ignore"):
            content = checkpoints.encode(self._tensors(adapter), self._metadata(adapter))
        checkpoints.write(path, content, lambda: self.fault.while_saving(step, self.stop))
        self.recording.event("save_end", step=step)
        say(f"Saved checkpoint to {path}")

    def _tensors(self, adapter: Adapter) -> dict[str, np.ndarray]:
        tensors = adapter.tensors()
        if self.average is not None and adapter is self.adapter:
            tensors.update(self.average.tensors())
        if self.settings.checkpoint_mb:
            tensors["base.weight"] = filled(self.settings.checkpoint_mb)
        return tensors

    def _metadata(self, adapter: Adapter) -> dict[str, Any]:
        """What a header says, all of it text: enough to know the step and to compute the loss again."""
        settings, step = self.settings, adapter.step
        epoch = step * min(settings.batch_size, len(self.dataset)) // len(self.dataset)
        return {
            "format": "pt",
            "name": settings.name,
            "trigger": settings.trigger,
            "training_info": json.dumps({"step": step, "epoch": epoch}),
            "loss": repr(self.dataset.loss(adapter)),
            "config": json.dumps(self._own_config()),
            "seed": str(settings.seed),
        }

    def _remove_old_saves(self) -> None:
        for path in checkpoints.numbered(self.settings.output, self.settings.name)[: -self.settings.keep_saves]:
            say(f"Removing old save: {path}")
            path.unlink()

    def _sample(self) -> None:
        step = self.adapter.step
        self.recording.event("sampling_start", step=step)
        chosen = range(min(_MOST_SAMPLES, len(self.dataset)))
        bar = Bar(len(chosen), "Generating Images", leave=False)
        for index in chosen:
            image = self.dataset.side_by_side(self.adapter, index)
            content = io.BytesIO()
            image.save(content, format="PNG")
            path = self.samples / f"{time.time_ns() // 1_000_000}__{step:09d}_{index}.png"
            checkpoints.write(path, content.getvalue())
            self.recording.image(path, step=step)
            bar.update()
        bar.close()
        self.recording.event("sampling_end", step=step)


def _nothing() -> None:
    """What workers do after each picture that they have decoded."""


def _config(settings: Settings) -> dict[str, Any]:
    """The settings as they can be written down."""
    return {name: str(value) if isinstance(value, Path) else value for name, value in vars(settings).items()}


def _say_result(*, completed: int, failed: int) -> None:
    def plural(count: int) -> str:
        return "" if count == 1 else "s"

    say("\n" + _RULE)
    say("Result:")
    say(f" - {completed} completed job{plural(completed)}")
    if failed:
        say(f" - {failed} failure{plural(failed)}")
    say(_RULE)
