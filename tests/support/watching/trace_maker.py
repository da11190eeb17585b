"""Made-up trainings as a watcher sees them through the log, with the right answer known by construction.

A `Run` is driven like a training (load, train, pause, hang) and writes what its trainer would print; the scenarios in
`trace_scenarios.py` put such pieces together. Everything follows from the seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

POLL = 60.0
GRACE = 900.0
MINUTE = 60.0


@dataclass(frozen=True, kw_only=True)
class Stall:
    """An inserted stall: when it begins, when it must be detected, and when it ends, if it does."""

    onset: float
    flag_after: float
    flag_by: float
    resumes_at: float | None = None
    clears_by: float | None = None


@dataclass(frozen=True, kw_only=True)
class MadeTrace:
    name: str
    trainer: str
    chunks: list[tuple[float, str]]
    end: float
    total_steps: int | None
    stalls: list[Stall] = field(default_factory=list)


def clock(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes:02}:{seconds:02}"


def bar(label: str, done: int, total: int, elapsed: float, rate: float | None, postfix: str = "") -> str:
    """A tqdm bar; `rate` in seconds per step."""
    part = done / total
    drawn = ("█" * int(10 * part)).ljust(10)
    times = f"{clock(elapsed)}<{clock((total - done) * rate)}" if rate else f"{clock(elapsed)}<?"
    speed = "?it/s" if not rate else (f"{rate:5.2f}s/it" if rate >= 1 else f"{1 / rate:5.2f}it/s")
    head = f"{label}: " if label else ""
    return f"\r{head}{int(100 * part):3d}%|{drawn}| {done}/{total} [{times}, {speed}{postfix}]"


class Trainer:
    """What one trainer prints. Lines come at every `every` steps, bars at most each `redraw` seconds."""

    name = "ai-toolkit"
    every = 1
    redraw = 8.0
    prints_total = True

    def header(self, run: Run) -> str:
        return "Running 1 job\nLoading Flux model\nLoading transformer\nQuantizing transformer\n"

    def progress(self, run: Run) -> str:
        postfix = f", lr: 1.0e-04 loss: {run.loss():.3e}"
        return bar("quiet-lamp", run.step, run.shown_total, run.elapsed, run.rate, postfix if run.step else "")

    def save(self, run: Run) -> str:
        return f"\n\nSaving at step {run.step}\n"

    def saved(self, run: Run) -> str:
        folder = "output/quiet-lamp"
        return (
            f"Saved checkpoint to {folder}/lamp_{run.step:09}.safetensors\nSaved optimizer to {folder}/optimizer.pt\n"
        )

    def sample(self, run: Run) -> str:
        return "\n"

    def sampling(self, done: int, total: int, elapsed: float) -> str:
        return bar("Generating Images", done, total, elapsed, elapsed / done if done else None)

    def evaluate(self, run: Run) -> str:
        return "\n***** Running Evaluation *****\n  Num examples = 400\n  Batch size = 8\n"

    def evaluating(self, done: int, total: int, elapsed: float) -> str:
        return bar("", done, total, elapsed, elapsed / done if done else None)

    def epoch(self, run: Run) -> str:
        return ""

    def end(self, run: Run) -> str:
        rule = "=" * 42
        return f"\n{rule}\nResult:\n - 1 completed job\n{rule}\n"


class Kohya(Trainer):
    name = "kohya"

    def header(self, run: Run) -> str:
        return (
            "INFO     Loading settings from lamp.toml...                  train_util.py:4435\n"
            "INFO     prepare tokenizers                              flux_train_network.py:60\n"
            "running training / 学習開始\n  num epochs / epoch数: 4\n"
            f"  total optimization steps / 学習ステップ数: {run.shown_total}\n"
        )

    def progress(self, run: Run) -> str:
        mean = run.elapsed / run.step if run.step else None
        return bar(
            "steps", run.step, run.shown_total, run.elapsed, mean, f", avr_loss={run.loss():.3f}" if mean else ""
        )

    def save(self, run: Run) -> str:
        return f"\nsaving checkpoint: output/lamp-step{run.step:08}.safetensors\n"

    def saved(self, run: Run) -> str:
        return ""

    def sample(self, run: Run) -> str:
        return (
            f"\ngenerating sample images at step / サンプル画像生成 ステップ: {run.step}\n"
            "prompt: a lamp on a desk\nheight: 512\nwidth: 512\nsample_steps: 20\n"
        )

    def sampling(self, done: int, total: int, elapsed: float) -> str:
        return bar("", done, total, elapsed, elapsed / done if done else None)

    def epoch(self, run: Run) -> str:
        return f"\n\nepoch {1 + 4 * run.step // run.total}/4\n"

    def end(self, run: Run) -> str:
        return "\nINFO     model saved.                       flux_train_network.py:1460\n"


class Diffusers(Trainer):
    name = "diffusers"

    def header(self, run: Run) -> str:
        return (
            "03/02/2026 11:05:10 - INFO - __main__ - ***** Running training *****\n"
            f"03/02/2026 11:05:10 - INFO - __main__ -   Total optimization steps = {run.shown_total}\n"
        )

    def progress(self, run: Run) -> str:
        postfix = f", loss={run.loss():.3g}, lr=0.0001" if run.step else ""
        return bar("Steps", run.step, run.shown_total, run.elapsed, run.rate, postfix)

    def save(self, run: Run) -> str:
        source = "03/02/2026 12:05:10 - INFO - accelerate.accelerator"
        return f"{source} - Saving current state to lamp/checkpoint-{run.step}\n"

    def saved(self, run: Run) -> str:
        return f"03/02/2026 12:07:10 - INFO - __main__ - Saved state to lamp/checkpoint-{run.step}\n"

    def sample(self, run: Run) -> str:
        source = "03/02/2026 12:08:10 - INFO - __main__"
        return f"{source} - Running validation... \n Generating 4 images with prompt: a lamp.\n"

    def sampling(self, done: int, total: int, elapsed: float) -> str:
        return bar("", done, total, elapsed, elapsed / done if done else None)

    def end(self, run: Run) -> str:
        return "\nModel weights saved in lamp/pytorch_lora_weights.safetensors\n"


class HuggingFace(Trainer):
    name = "hf-trainer"

    def header(self, run: Run) -> str:
        total = f"  Total optimization steps = {run.shown_total:,}\n"
        return f"***** Running training *****\n  Num examples = 4,000\n  Num Epochs = 3\n{total}"

    def progress(self, run: Run) -> str:
        return bar("", run.step, run.shown_total, run.elapsed, run.rate)

    def save(self, run: Run) -> str:
        return f"\nSaving model checkpoint to outputs/checkpoint-{run.step}\n"

    def saved(self, run: Run) -> str:
        return f"tokenizer config file saved in outputs/checkpoint-{run.step}/tokenizer_config.json\n"

    def end(self, run: Run) -> str:
        return (
            "\n\nTraining completed. Do not forget to share your model on huggingface.co/models =)\n\n"
            f"{{'train_runtime': {run.t:.1f}, 'train_steps_per_second': 0.6, 'train_loss': 1.7, 'epoch': 3.0}}\n"
        )


class HuggingFaceLines(HuggingFace):
    """Bars off: dict lines without a step, only the fraction of the epoch."""

    name = "hf-lines"
    every = 50
    redraw = 0.0

    def progress(self, run: Run) -> str:
        if not run.step:
            return ""
        epoch = 3 * run.step / run.total
        return f"{{'loss': {run.loss():.4f}, 'grad_norm': 0.7, 'learning_rate': 9e-05, 'epoch': {epoch:.3f}}}\n"


class Plain(Trainer):
    name = "plain"
    every = 20
    redraw = 0.0

    def header(self, run: Run) -> str:
        return "Loading dataset...\nBuilding model...\nStarting training for 3 epochs\n"

    def progress(self, run: Run) -> str:
        return f"Step {run.step}: Loss = {run.loss():.3f}\n" if run.step else ""

    def save(self, run: Run) -> str:
        return f"Saving checkpoint to checkpoints/step_{run.step}.pt\n"

    def saved(self, run: Run) -> str:
        return f"Checkpoint saved to checkpoints/step_{run.step}.pt\n"

    def evaluate(self, run: Run) -> str:
        return "Running validation...\n"

    def end(self, run: Run) -> str:
        return "Training complete. Model saved to checkpoints/final.pt\n"


class NanoGpt(Trainer):
    name = "nanogpt"
    every = 10
    redraw = 0.0
    prints_total = False

    def header(self, run: Run) -> str:
        compiling = "compiling the model... (takes a ~minute)\n"
        return f"tokens per iteration will be: 245,760\nnumber of parameters: 29.94M\n{compiling}"

    def progress(self, run: Run) -> str:
        return f"iter {run.step}: loss {run.loss():.4f}, time {1000 * run.rate:.2f}ms, mfu 21.30%\n"

    def save(self, run: Run) -> str:
        return "saving checkpoint to out\n"

    def saved(self, run: Run) -> str:
        return ""

    def evaluate(self, run: Run) -> str:
        return ""

    def end(self, run: Run) -> str:
        return ""


class Lightning(Trainer):
    """The bar counts within the epoch, which is counted from zero."""

    name = "lightning"
    epochs = 5

    def header(self, run: Run) -> str:
        return "GPU available: True (cuda), used: True\n  | Name  | Type | Params\n"

    def progress(self, run: Run) -> str:
        per_epoch = run.total // self.epochs
        epoch, step = divmod(run.step, per_epoch)
        if step == 0 and epoch:
            epoch, step = epoch - 1, per_epoch
        postfix = f", v_num=0, train_loss={run.loss():.3f}"
        return bar(f"Epoch {epoch}", step, per_epoch, run.elapsed, run.rate if step else None, postfix if step else "")

    def evaluating(self, done: int, total: int, elapsed: float) -> str:
        return bar("Validation DataLoader 0", done, total, elapsed, elapsed / done if done else None)

    def evaluate(self, run: Run) -> str:
        return "\n"

    def save(self, run: Run) -> str:
        reached = f"Epoch 1, global step {run.step}: 'val_loss' reached 0.4"
        return f"\n{reached}, saving model to 'ckpt/lamp-{run.step}.ckpt' as top 1\n"

    def saved(self, run: Run) -> str:
        return ""

    def end(self, run: Run) -> str:
        return "\n`Trainer.fit` stopped: `max_epochs=5` reached.\n"


BAR_TRAINERS = (Trainer, Kohya, Diffusers, HuggingFace)
ALL_TRAINERS = (*BAR_TRAINERS, HuggingFaceLines, Plain, NanoGpt, Lightning)

Slowness = Callable[[float], float]  # seconds of training so far -> factor on the step time


def constantly(factor: float) -> Slowness:
    return lambda trained: factor


class Run:
    """A training being made up. Times are seconds since its start."""

    def __init__(self, trainer: Trainer, *, seed: int, total: int, step_seconds: float, wobble: float = 0.06) -> None:
        self.random = random.Random(seed)
        self.trainer = trainer
        self.total = total
        self.shown_total = total
        self.shown_offset = 0
        self.step_seconds = step_seconds
        self.wobble = wobble
        self.t = 0.0
        self.done = 0
        self.rate = step_seconds
        self.trained = 0.0
        self.chunks: list[tuple[float, str]] = []
        self.truth: list[tuple[float, float, int]] = []  # (time, training time, steps done)
        self._bar_began = 0.0
        self._drawn_at = -1e9

    @property
    def step(self) -> int:
        return self.done - self.shown_offset

    @property
    def elapsed(self) -> float:
        return self.t - self._bar_began

    def loss(self) -> float:
        return 0.2 + 0.5 / (1 + self.done / 300) + 0.1 * self.random.random()

    def say(self, text: str) -> None:
        if text:
            self.chunks.append((round(self.t, 1), text))

    def quiet(self, seconds: float) -> None:
        self.t += seconds

    def load(self, seconds: float = 90.0) -> None:
        self.say(self.trainer.header(self))
        self.quiet(seconds)
        self._bar_began = self.t
        self.draw()

    def draw(self) -> None:
        self._drawn_at = self.t
        self.say(self.trainer.progress(self))

    def train(self, steps: int, slowness: Slowness = lambda trained: 1.0) -> None:
        """Do so many steps; `slowness` multiplies the step time by training time since this call."""
        began = self.trained
        for _ in range(steps):
            seconds = self.step_seconds * slowness(self.trained - began) * self.random.gauss(1.0, self.wobble)
            seconds = max(0.05 * self.step_seconds, seconds)
            self.t += seconds
            self.trained += seconds
            self.done += 1
            self.rate += 0.3 * (seconds - self.rate)
            self.truth.append((self.t, self.trained, self.done))
            if self.done % self.trainer.every == 0 and self.t - self._drawn_at >= self.trainer.redraw:
                self.draw()

    def train_for(self, seconds: float, slowness: Slowness = lambda trained: 1.0) -> None:
        """Train until so much training time has passed since this call."""
        began = self.trained
        while self.trained - began < seconds and self.done < self.total:
            self.train(1, constantly(slowness(self.trained - began)))

    def save(self, seconds: float) -> None:
        self.say(self.trainer.save(self))
        self.quiet(seconds)
        self.say(self.trainer.saved(self))

    def sample(self, seconds: float, *, images: int = 4, until: int | None = None) -> None:
        self.say(self.trainer.sample(self))
        self._side_bar(self.trainer.sampling, images, seconds, until)

    def evaluate(self, seconds: float, *, batches: int = 50, until: int | None = None) -> None:
        self.say(self.trainer.evaluate(self))
        self._side_bar(self.trainer.evaluating, batches, seconds, until)

    def _side_bar(self, draw: Callable[[int, int, float], str], total: int, seconds: float, until: int | None) -> None:
        began = self.t
        for done in range(total + 1 if until is None else until):
            self.t = began + seconds * done / total
            self.say(draw(done, total, self.t - began))
        self.t = began + seconds if until is None else self.t
        self.say("\r" + " " * 60 + "\r")

    def download(self, seconds: float, *, until: float = 1.0, label: str = "model-00001-of-00002.safetensors") -> None:
        began, total = self.t, 9.4
        while self.t - began < seconds * until:
            self.t += 9.0
            part = min(1.0, (self.t - began) / seconds)
            drawn = ("█" * int(10 * part)).ljust(10)
            count = f"{total * part:.2f}G/{total}G"
            self.say(f"\r{label}: {100 * part:3.0f}%|{drawn}| {count} [{clock(self.t - began)}<05:00, 21MB/s]")
        self.say("\n" if until >= 1 else "")

    def cache(self, seconds: float, *, images: int = 120, until: float = 1.0) -> None:
        self.say("Caching latents for data/lamp\n")
        began = self.t
        for done in range(int(images * until) + 1):
            self.t = began + seconds * done / images
            self.say(bar("Caching latents to disk", done, images, self.t - began, seconds / images if done else None))
        self.say("\n" if until >= 1 else "")

    def crash(self, *, back_to: int, loading: float = 90.0, is_renumbered: bool = False) -> None:
        """Die and start again at an earlier step; kohya then counts only what remains."""
        self.say('\nTraceback (most recent call last):\n  File "train.py", line 812, in <module>\n')
        self.say("RuntimeError: CUDA error: unspecified launch failure\n\n")
        self.quiet(20.0)
        self.done = back_to
        if is_renumbered:
            self.shown_offset = back_to
            self.shown_total = self.total - back_to
        self.load(loading)

    def end(
        self, name: str, *, after: float = 150.0, total_known: bool = True, stalls: list[Stall] | None = None
    ) -> MadeTrace:
        self.quiet(after)
        return MadeTrace(
            name=f"{name}-{self.trainer.name}",
            trainer=self.trainer.name,
            chunks=[*self.chunks, (self.t, "")],
            end=self.t,
            total_steps=self.total if total_known else None,
            stalls=stalls or [],
        )

    def finish(self, name: str, *, total_known: bool = True, stalls: list[Stall] | None = None) -> MadeTrace:
        """Train to the end and say so."""
        self.train(self.total - self.done)
        self.draw()
        self.say(self.trainer.end(self))
        return self.end(name, total_known=total_known, stalls=stalls)

    def eta_fails_at(self, onset: float) -> float:
        """When the true ETA over ten minutes of training first failed to fall by half of the time."""
        window = 600.0
        grid = [(t, trained, done) for t, trained, done in self.truth if t > onset - 1300]
        for t, trained, done in grid:
            if t <= onset:
                continue
            then = _steps_at(self.truth, trained - window)
            earlier = _steps_at(self.truth, trained - 2 * window)
            if then is None or earlier is None or done == then or then == earlier:
                continue
            eta_now = (self.total - done) * window / (done - then)
            eta_then = (self.total - then) * window / (then - earlier)
            if eta_then - eta_now < window / 2:
                return t
        raise AssertionError("this run never slows down enough")


def _steps_at(truth: list[tuple[float, float, int]], trained: float) -> float | None:
    low, high = 0, len(truth) - 1
    if not truth or truth[0][1] > trained:
        return None
    while low < high:
        middle = (low + high + 1) // 2
        if truth[middle][1] <= trained:
            low = middle
        else:
            high = middle - 1
    return float(truth[low][2])
