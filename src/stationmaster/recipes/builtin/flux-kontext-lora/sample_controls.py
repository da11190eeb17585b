"""Give each sample prompt a picture to start from: python3 sample_controls.py --config FILE --written FILE …

Kontext changes a picture, so a sample needs one: a prompt that is a caption of the dataset gets that pair's control
picture, any other the first, second, … one. The sample gets that picture's proportions.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from trainer_python import python_of

_PICTURES = (".png", ".jpg", ".jpeg", ".webp")
_SAMPLES = 2  # where nobody wrote a prompt
_SIDE = 16  # the model's pictures have sides that are multiples of this


class Pair(NamedTuple):
    caption: str
    control: Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trainer", type=Path, required=True)
    parser.add_argument("--python", default="")
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--written", type=Path, required=True, help="the config that the trainer reads")
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--controls", type=Path, required=True)
    parser.add_argument("--measure", action="store_true", help="this Python can read pictures")
    arguments = parser.parse_args()
    if not arguments.measure:
        python = python_of(arguments.trainer, arguments.python)
        os.execvp(python, [python, *sys.argv, "--measure"])
    config = json.loads(arguments.config.read_text(encoding="utf-8"))
    pairs = pairs_of(arguments.results, arguments.controls)
    with_controls(config["config"]["process"][0], pairs)
    # ai-toolkit puts environment variables, secrets among them, in the place of every ${NAME} in this text.
    arguments.written.write_text(json.dumps(config, indent=2).replace("$", "\\u0024"), encoding="utf-8")


def pairs_of(results: Path, controls: Path) -> list[Pair]:
    """Every control picture with its result's caption, by name."""
    found = sorted(path for path in controls.rglob("*") if path.suffix.lower() in _PICTURES)
    return [Pair(_caption(results / path.relative_to(controls).with_suffix(".txt")), path) for path in found]


def with_controls(process: dict[str, Any], pairs: Sequence[Pair]) -> None:
    """Change a process of the config: its samples are prompts with control pictures."""
    sample, trigger = process["sample"], process.get("trigger_word", "")
    prompts = sample.pop("prompts") or [pair.caption for pair in pairs[:_SAMPLES]]
    sample["samples"] = (
        [_sample(prompt, _control_of(prompt, at, pairs, trigger), sample) for at, prompt in enumerate(prompts)]
        if pairs
        else []
    )


def _control_of(prompt: str, at: int, pairs: Sequence[Pair], trigger: str) -> Path:
    for pair in pairs:
        caption = pair.caption.replace("[trigger]", trigger).strip()
        if caption and prompt.replace("[trigger]", trigger) in (caption, f"{trigger}, {caption}"):
            return pair.control
    return pairs[at % len(pairs)].control


def _sample(prompt: str, control: Path, sample: dict[str, Any]) -> dict[str, Any]:
    width, height = fitting_size(_size_of(control), area=sample["width"] * sample["height"])
    return {"prompt": prompt, "ctrl_img": str(control), "width": width, "height": height}


def fitting_size(size: tuple[int, int], *, area: int) -> tuple[int, int]:
    """Sides in the same proportion, of about this area: the trainer stretches the control picture to its sample."""
    scale = (area / (size[0] * size[1])) ** 0.5
    width, height = (max(_SIDE, round(side * scale / _SIDE) * _SIDE) for side in size)
    return width, height


def _size_of(picture: Path) -> tuple[int, int]:
    from PIL import Image  # only the trainer's Python has it

    with Image.open(picture) as image:
        return image.size


def _caption(path: Path) -> str:
    return " ".join(path.read_text(encoding="utf-8", errors="replace").split()) if path.is_file() else ""


if __name__ == "__main__":
    main()
