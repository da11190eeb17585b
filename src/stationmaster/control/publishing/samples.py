"""Sample images of a model: the trainer's last ones, and the prompt of each."""

from __future__ import annotations

import os
import re
import tarfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeVar

from stationmaster.datasets.tree import files_of, read_unchanged, scan
from stationmaster.model import Checkpoint, Job
from stationmaster.recipes.schema import OutputKind

COUNT = 4
_NUMBER = re.compile(r"_(\d{1,4})(?:_\d{14}(?:_\d+)?)?\.\w+$")  # the prompt's; sd-scripts adds the time and a seed
_LONGEST_CAPTION = 500
_READ_BYTES = 8192
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenSample:
    """A local sample; `path` is its path on the machine, `name` its name in a repository, `text` its prompt."""

    path: str
    name: str
    location: str
    size: int
    sha256: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePrompt:
    """What a sample was made from: the prompt's number, from 0, and its text if the trainer was given one."""

    number: int
    text: str | None


def prompts_of_samples(job: Job, files: Iterable[Checkpoint]) -> dict[tuple[int, str], SamplePrompt]:
    """The prompt of each sample, by its attempt and path. Files without a number in their name count in their order."""
    given = _given_prompts(job)
    found: dict[tuple[int, str], SamplePrompt] = {}
    seen: Counter[tuple[int, int | None]] = Counter()
    for one in sorted((one for one in files if one.kind == OutputKind.SAMPLE), key=lambda one: one.path):
        number = _number_of(one.path, seen[one.attempt, one.step])
        seen[one.attempt, one.step] += 1
        text = given[number % len(given)] if given else None
        found[one.attempt, one.path] = SamplePrompt(number=number, text=text)
    return found


def choose_samples(job: Job, files: Iterable[Checkpoint]) -> tuple[ChosenSample, ...]:
    """Up to four samples of the latest step, spread evenly over all of them; only verified local files."""
    found = [
        one
        for one in files
        if one.kind == OutputKind.SAMPLE and one.attempt == job.attempt and one.verified_at and one.location
    ]
    latest = max((one.step or 0 for one in found), default=0)
    last = sorted((one for one in found if (one.step or 0) == latest), key=lambda one: one.path)
    prompts = _prompts(job)
    chosen = spread(last, COUNT)
    names = sample_names([one.path for one in chosen])
    return tuple(
        ChosenSample(
            path=one.path,
            name=names[at],
            location=str(one.location),
            size=one.size,
            sha256=str(one.sha256),
            text=_text_of(one.path, at, prompts, job),
        )
        for at, one in enumerate(chosen)
    )


def sample_names(paths: Sequence[str]) -> list[str]:
    """Names of samples in a repository: their own names, with their folders where those are not distinct.

    >>> sample_names(["output/samples/0.png", "output/samples/1.png"])
    ['samples/0.png', 'samples/1.png']
    >>> sample_names(["output/a/info.png", "output/b/info.png"])
    ['samples/a/info.png', 'samples/b/info.png']
    """
    found = [PurePosixPath(path) for path in paths]
    if len({path.name for path in found}) == len(found):
        return [f"samples/{path.name}" for path in found]
    common = os.path.commonpath([path.parent for path in found])
    return [f"samples/{path.relative_to(common)}" for path in found]


def spread(values: Sequence[Value], count: int) -> list[Value]:
    """`count` of the values, evenly over all of them, first and last among them.

    >>> spread("abcdefg", 4)
    ['a', 'c', 'e', 'g']
    """
    if len(values) <= count:
        return list(values)
    return [values[round(at * (len(values) - 1) / (count - 1))] for at in range(count)]


def captions_of(archive: Path, *, trigger: str | None, count: int = COUNT) -> list[str]:
    """Captions spread over a packed dataset, each with the trigger; none where the set has none or is gone."""
    try:
        with tarfile.open(archive, "r:") as tar:  # uncompressed: "r" would try every compression first
            members = sorted((one for one in tar if _is_caption(one)), key=lambda one: one.name)
            texts = [_read(tar, one) for one in spread(members, count)]
    except (OSError, tarfile.TarError):
        return []
    return [with_trigger(text, trigger) for text in texts if text]


def captions_in(folder: Path, *, trigger: str | None, count: int = COUNT) -> list[str]:
    """The same captions, of the folder that is to be packed."""
    files = [file for file in files_of(scan(folder)) if file.size and file.name.endswith(".txt")]
    chosen = spread(sorted(files, key=lambda file: file.path), count)
    texts = [_one_line(read_unchanged(file)) for file in chosen]
    return [with_trigger(text, trigger) for text in texts if text]


def with_trigger(text: str, trigger: str | None) -> str:
    """The text with the trigger word in it.

    >>> with_trigger("[trigger] in a park", "ohwx"), with_trigger("a cat", "ohwx"), with_trigger("ohwx cat", "ohwx")
    ('ohwx in a park', 'ohwx, a cat', 'ohwx cat')
    """
    filled = text.replace("[trigger]", trigger or "").strip()
    return filled if not trigger or trigger in filled else f"{trigger}, {filled}"


def _prompts(job: Job) -> list[str]:
    """The prompts given to the trainer, else captions of its dataset."""
    return _given_prompts(job) or captions_of(Path(job.spec.dataset.archive), trigger=job.spec.trigger)


def _given_prompts(job: Job) -> list[str]:
    asked = job.spec.parameters.get("sample_prompts")
    lines = asked.splitlines() if isinstance(asked, str) else []
    return [with_trigger(line, job.spec.trigger) for line in lines if line.strip()]


def _text_of(path: str, at: int, prompts: Sequence[str], job: Job) -> str:
    if prompts:
        return prompts[_number_of(path, at) % len(prompts)]
    return job.spec.trigger or job.spec.name


def _number_of(path: str, at: int) -> int:
    found = _NUMBER.search(path)
    return int(found[1]) if found else at


def _is_caption(member: tarfile.TarInfo) -> bool:
    return member.isfile() and member.size > 0 and member.name.endswith(".txt")


def _read(tar: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    file = tar.extractfile(member)
    return "" if file is None else _one_line(file.read(_READ_BYTES))


def _one_line(text: bytes) -> str:
    return " ".join(text[:_READ_BYTES].decode("utf-8", "replace").split())[:_LONGEST_CAPTION]
