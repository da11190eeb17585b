"""What the two trainers print."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol

from tests.support.analysis_cases.configs import AI_TOOLKIT

_RULE = "=" * 40
_FRAMES = """\
Traceback (most recent call last):
  File "/srv/trainer/main.py", line 88, in <module>
    main()
  File "/srv/trainer/main.py", line 61, in main
    trainer.run()
"""
_LAUNCHER = """\
Traceback (most recent call last):
  File "/usr/local/bin/accelerate", line 8, in <module>
    sys.exit(main())
  File "/usr/local/lib/python3.11/site-packages/accelerate/commands/launch.py", line 785, in simple_launcher
    raise subprocess.CalledProcessError(returncode=process.returncode, cmd=cmd)
subprocess.CalledProcessError: Command '['python', 'train_network.py']' returned non-zero exit status 1.
"""


class Log(Protocol):
    """A trainer's log, growing."""

    text: str

    def loading(self, at: float) -> None: ...
    def begin(self, total: int) -> None: ...
    def resume(self, step: int, total: int) -> None: ...
    def bar(self, step: int, total: int, seconds: float, *, loss: float | None, lr: float) -> None: ...
    def sampling(self, step: int) -> None: ...
    def saving(self, step: int) -> None: ...
    def saved(self, step: int | None) -> None: ...
    def failure(self, error: str) -> None: ...
    def end(self, at: float, last: str) -> None: ...


class AiToolkitLog:
    """A bar with the step, its learning rate and its loss; plain lines without times."""

    def __init__(self, *, shows_index: bool = False) -> None:
        self.text = ""
        self._shows_index = shows_index  # as before August 2026: the last bar is M-1 of M

    def loading(self, at: float) -> None:
        del at
        self.text += "Running 1 job\nRunning  1 process\nLoading Flux model\nLoading transformer\n"

    def begin(self, total: int) -> None:
        self.text += (
            "Preparing Model\nModel Loaded\ncreate LoRA network. base dim (rank): 16, alpha: 16\n"
            "Dataset: data/clay_bird\n  -  Preprocessing image dimensions\n"
            "\r  0%|          | 0/40 [00:00<?, ?it/s]\r100%|██████████| 40/40 [00:02<00:00, 20.00it/s]\n"
            "  -  Found 40 images\nBucket sizes for data/clay_bird:\n1024x1024: 40 files\n1 buckets made\n"
            f"Skipping first sample due to config setting\n\rclay_bird:   0%|          | 0/{total} [00:00<?, ?it/s]"
        )

    def resume(self, step: int, total: int) -> None:
        self.text += (
            f"#### IMPORTANT RESUMING FROM output/clay_bird/clay_bird_{step:09}.safetensors ####\n"
            f"Found step {step} in metadata, starting from there\n"
            f"\rclay_bird:  {100 * step // total:2}%|{_bar(step, total)}| {step}/{total} [00:00<?, ?it/s]"
        )

    def bar(self, step: int, total: int, seconds: float, *, loss: float | None, lr: float) -> None:
        shown = step - self._shows_index
        self.text += f"\rclay_bird: {_progress(shown, total, seconds)}, lr: {lr:.1e} loss: {loss or 0.0:.3e}]"

    def sampling(self, step: int) -> None:
        del step
        self.text += "\rGenerating Images:   0%|          | 0/4 [00:00<?, ?it/s]"

    def saving(self, step: int) -> None:
        self.text += f"\nSaving at step {step}\n"

    def saved(self, step: int | None) -> None:
        name = "clay_bird" if step is None else f"clay_bird_{step:09}"
        self.text += f"Saved checkpoint to output/clay_bird/{name}.safetensors\n"
        self.text += "Saved optimizer to output/clay_bird/optimizer.pt\n"

    def failure(self, error: str) -> None:
        message = error.partition(": ")[2] or error
        self.text += f"\nError running job: {message}\n\n{_RULE}\nResult:\n - 0 completed jobs\n - 1 failure\n{_RULE}\n"
        self.text += f"{_FRAMES}{error}\n"

    def end(self, at: float, last: str) -> None:
        del at
        self.text += f"{last}\nSaving\n"
        self.saved(None)
        self.text += f"\n{_RULE}\nResult:\n - 1 completed job\n{_RULE}\n"


class KohyaLog:
    """Lines of a logger with local times, a bar with the mean loss; a launcher repeats every failure."""

    def __init__(self, *, utc_offset: float = 0.0, skipped: int = 0) -> None:
        self.text = ""
        self._utc_offset = utc_offset
        self._skipped = skipped  # the bar of a resumed run counts from there

    def loading(self, at: float) -> None:
        self.line(at, "INFO", "Loading settings from config.toml...", "train_util.py:4621")
        self.line(at + 2, "INFO", "loading model for process 0/1", "sdxl_train_util.py:32")

    def begin(self, total: int) -> None:
        self.text += (
            "create LoRA network. base dim (rank): 32, alpha: 16.0\nrunning training / 学習開始\n"
            "  num epochs / epoch数: 2\n  batch size per device / バッチサイズ: 1\n"
            f"  total optimization steps / 学習ステップ数: {total}\n"
            f"\rsteps:   0%|          | 0/{total - self._skipped} [00:00<?, ?it/s]\nepoch 1/2\n"
        )

    def resume(self, step: int, total: int) -> None:
        self._skipped = step
        self.begin(total)

    def bar(self, step: int, total: int, seconds: float, *, loss: float | None, lr: float) -> None:
        del lr
        shown = "nan" if loss is None else f"{loss:.3g}"
        progress = _progress(step - self._skipped, total - self._skipped, seconds)
        self.text += f"\rsteps: {progress}, avr_loss={shown}]"

    def sampling(self, step: int) -> None:
        self.text += f"\n\ngenerating sample images at step / サンプル画像生成 ステップ: {step}\nprompt: a clay bird\n"
        self.text += "\r  0%|          | 0/20 [00:00<?, ?it/s]\r100%|██████████| 20/20 [00:08<00:00,  2.50it/s]\n"

    def saving(self, step: int) -> None:
        self.text += f"\nsaving checkpoint: output/clay_bird-step{step:08}.safetensors\n"

    def saved(self, step: int | None) -> None:
        del step  # it prints nothing

    def failure(self, error: str) -> None:
        self.text += f"\n{_FRAMES}{error}\n{_LAUNCHER}"

    def end(self, at: float, last: str) -> None:
        self.text += "\n\nsaving checkpoint: output/clay_bird.safetensors\n"
        self.line(at, "INFO", "model saved.", "train_network.py:1490")
        self.text += last

    def line(self, at: float, level: str, message: str, place: str) -> None:
        moment = datetime.fromtimestamp(at + self._utc_offset, UTC)
        self.text += f"{moment:%Y-%m-%d %H:%M:%S} {level:8} {message:70} {place}\n"


def new_log(trainer: str, *, utc_offset: float) -> AiToolkitLog | KohyaLog:
    return AiToolkitLog() if trainer == AI_TOOLKIT else KohyaLog(utc_offset=utc_offset)


def _progress(step: int, total: int, seconds: float) -> str:
    pace = seconds / max(step, 1)
    rate = f"{pace:5.2f}s/it" if pace >= 1 else f"{1 / max(pace, 1e-6):5.2f}it/s"
    left = _clock(pace * (total - step))
    return f"{100 * step // total:3}%|{_bar(step, total)}| {step}/{total} [{_clock(seconds)}<{left}, {rate}"


def _bar(step: int, total: int) -> str:
    filled = 10 * step // total
    return "█" * filled + " " * (10 - filled)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"
