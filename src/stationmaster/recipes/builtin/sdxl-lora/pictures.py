"""Prepare what sd-scripts reads: pictures with their captions, the prompts of the samples, the data of a further try.

sd-scripts does not put the trigger word in the place of [trigger], reads only the first line of a caption, fails on an
empty one, and writes its caches beside the pictures. So it gets a folder of its own; the dataset stays as it is.
Running this again changes nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

PLACEHOLDER = "[trigger]"
PICTURES = {".png", ".jpg", ".jpeg", ".webp"}
CAPTIONS = (".txt", ".caption")


def main(settings_file: str) -> None:
    settings = json.loads(Path(settings_file).read_text(encoding="utf-8"))
    folder, trigger = Path(settings["pictures"]), settings["trigger"]
    count = prepare_pictures(Path(settings["dataset"]), folder, trigger)
    write_json(Path(settings["samples_file"]), samples_of(settings["samples"], trigger))
    again = settings["again"]
    config = json.loads(Path(again["config_file"]).read_text(encoding="utf-8"))
    write_json(Path(settings["again_file"]), again_of(config, wanted=again["pictures"], pictures=count))
    print(f"{count} pictures are ready in {folder}")


def prepare_pictures(dataset: Path, folder: Path, trigger: str) -> int:
    """Put every picture of the dataset with its caption into `folder`; how many there are."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = sorted(path for path in dataset.iterdir() if path.suffix.lower() in PICTURES)
    taken = set()
    for picture in pictures:
        # The trainer names a cache after the picture without its suffix: cat.jpg and cat.png must not share one.
        stem = picture.name if picture.stem in taken else picture.stem
        taken.add(stem)
        link(picture, folder / f"{stem}{picture.suffix.lower()}")
        caption = with_trigger(caption_of(picture), trigger) or trigger
        if caption:  # an empty file would stop the trainer
            (folder / f"{stem}.txt").write_text(caption + "\n", encoding="utf-8")
    return len(pictures)


def link(picture: Path, target: Path) -> None:
    """Make the picture be at `target` too, without using more disk where the file system can do that."""
    if target.exists():
        return
    part = target.with_name(target.name + ".part")
    part.unlink(missing_ok=True)
    try:
        os.link(picture.resolve(), part)
    except OSError:
        shutil.copyfile(picture, part)
    part.replace(target)


def caption_of(picture: Path) -> str:
    """The caption as one line; empty where there is none."""
    for suffix in CAPTIONS:
        file = picture.with_suffix(suffix)
        if file.is_file():
            return " ".join(file.read_text(encoding="utf-8-sig").split())
    return ""


def with_trigger(text: str, trigger: str) -> str:
    """The text with the trigger word in the place of [trigger]; without a trigger word nothing is put there."""
    return " ".join(text.replace(PLACEHOLDER, trigger).split())


def samples_of(samples: dict[str, Any], trigger: str) -> list[dict[str, Any]]:
    """The list that sd-scripts reads: one sample for each prompt, each with a seed of its own."""
    same = {name: value for name, value in samples.items() if name not in ("prompts", "seed")}
    return [
        {"prompt": with_trigger(prompt, trigger), "seed": samples["seed"] + number, **same}
        for number, prompt in enumerate(samples["prompts"])
    ]


def again_of(config: dict[str, Any], *, wanted: int, pictures: int) -> dict[str, Any]:
    """The dataset of a try that goes on from a state: one epoch as long as the whole training, of `wanted` pictures.

    sd-scripts v0.10.1 forgets the steps of whole epochs that it skips: it numbers its files from the wrong step and
    trains on past the end. Where the state lies within the first epoch, it counts right.
    """
    repeats = -(-wanted // max(1, pictures))
    subsets = [subset for dataset in config["datasets"] for subset in dataset["subsets"]]
    for subset in subsets:
        subset["num_repeats"] = repeats
    return config


def write_json(file: Path, data: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(data, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
