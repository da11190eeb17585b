"""Which samples show a model, and what is said of each."""

from __future__ import annotations

import io
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stationmaster.control.publishing.samples import (
    SamplePrompt,
    captions_of,
    choose_samples,
    prompts_of_samples,
    sample_names,
    spread,
)
from stationmaster.model import Checkpoint, Job
from tests.support.jobs.spine_values import job, spec


def sample(step: int, number: int, **fields: Any) -> Checkpoint:
    path = f"output/samples/cats__{step:09}_{number}.jpg"
    values = {"attempt": 1, "kind": "sample", "size": 1, "sha256": "a", "location": f"/home/{path}", "verified_at": 1.0}
    return Checkpoint(path=path, step=step, **{**values, **fields})


def trained(**fields: Any) -> Job:
    return replace(job(), spec=spec(trigger="ohwx", **fields))


def pack(path: Path, captions: dict[str, str]) -> Path:
    with tarfile.open(path, "w") as tar:
        for name, text in captions.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return path


def test_samples_of_the_last_step_are_chosen_with_the_prompt_that_each_was_made_from() -> None:
    prompts = "[trigger] in a park\n[trigger] at sea\na portrait"
    files = [sample(step, number) for step in (1000, 2000) for number in range(3)]
    chosen = choose_samples(trained(parameters={"sample_prompts": prompts}), files)
    assert [one.path[-15:] for one in chosen] == ["000002000_0.jpg", "000002000_1.jpg", "000002000_2.jpg"]
    assert [one.text for one in chosen] == ["ohwx in a park", "ohwx at sea", "ohwx, a portrait"]
    assert chosen[0].name == "samples/cats__000002000_0.jpg"


def test_sd_scripts_samples_have_the_prompt_s_number_before_the_time_and_the_seed() -> None:
    names = [f"output/sample/cats_000500_{number:02}_2026111608451{number}_{41 + number}.png" for number in range(3)]
    files = [replace(sample(500, number), path=name) for number, name in enumerate(names)]
    chosen = choose_samples(trained(parameters={"sample_prompts": "a\nb\nc"}), files)
    assert [one.text for one in chosen] == ["ohwx, a", "ohwx, b", "ohwx, c"]


def test_the_same_prompt_has_the_same_number_at_every_step() -> None:
    files = [sample(step, number) for step in (0, 1000) for number in range(2)]
    job = trained(parameters={"sample_prompts": "a cat\n\na dog"})
    found = prompts_of_samples(job, [*files, sample(5, 3, kind="checkpoint")])
    cat, dog = SamplePrompt(number=0, text=f"{job.spec.trigger}, a cat"), SamplePrompt(number=1, text=None)
    assert [found[1, one.path] for one in files] == [cat, replace(dog, text=f"{job.spec.trigger}, a dog")] * 2


def test_samples_without_a_number_count_in_their_order_and_have_no_prompt_that_nobody_gave() -> None:
    files = [replace(sample(5, 0), path=f"output/{name}.png", step=None) for name in ("b", "a")]
    found = prompts_of_samples(trained(), files)
    assert found[1, "output/a.png"] == SamplePrompt(number=0, text=None)
    assert found[1, "output/b.png"] == SamplePrompt(number=1, text=None)


def test_samples_of_one_name_in_two_folders_are_told_apart_in_the_repository() -> None:
    files = [replace(sample(5, 0), path=f"output/{folder}/info.png") for folder in ("a", "b")]
    names = [one.name for one in choose_samples(trained(), files)]
    assert names == ["samples/a/info.png", "samples/b/info.png"]


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map("/".join), st.integers(min_value=1, max_value=9))
def test_no_two_samples_have_one_name(folder: str, count: int) -> None:
    paths = list(dict.fromkeys([*(f"{folder}/{number}.png" for number in range(count)), "a/0.png", "a/b/0.png"]))
    names = sample_names(paths)
    assert len(set(names)) == len(paths)
    assert all(name.startswith("samples/") and ".." not in name for name in names)


def test_at_most_four_are_chosen_spread_over_what_there_is() -> None:
    chosen = choose_samples(trained(), [sample(5, number) for number in range(10)])
    assert [one.path[-5] for one in chosen] == ["0", "3", "6", "9"]


def test_only_verified_samples_of_this_attempt_are_shown() -> None:
    files = [sample(5, 0, attempt=2), sample(5, 1, verified_at=None), sample(5, 2, location=None)]
    assert choose_samples(trained(), [*files, sample(5, 3, kind="checkpoint")]) == ()


def test_without_prompts_the_sets_own_captions_are_used(tmp_path: Path) -> None:
    archive = pack(tmp_path / "set.tar", {f"{n}.txt": f"caption {n}" for n in range(7)})
    own = replace(spec().dataset, archive=str(archive))
    chosen = choose_samples(trained(dataset=own), [sample(5, number) for number in range(4)])
    assert [one.text for one in chosen] == [f"ohwx, caption {n}" for n in (0, 2, 4, 6)]


def test_four_captions_are_spread_over_the_set_each_with_the_trigger(tmp_path: Path) -> None:
    texts = {f"sub/{n:02}.txt": f"ohwx cat {n}\n" if n % 2 else f"a  cat\n{n}" for n in range(10)}
    archive = pack(tmp_path / "set.tar", {**texts, "00.png": "no caption", "empty.txt": ""})
    found = captions_of(archive, trigger="ohwx")
    assert len(found) == 4
    assert all("ohwx" in caption and "\n" not in caption for caption in found)
    assert captions_of(tmp_path / "nowhere.tar", trigger="ohwx") == []


@given(count=st.integers(0, 40), wanted=st.integers(2, 8))
def test_a_spread_keeps_the_order_and_both_ends(count: int, wanted: int) -> None:
    chosen = spread(range(count), wanted)
    assert chosen == sorted(set(chosen))
    assert len(chosen) == min(count, wanted)
    assert not count or (chosen[0], chosen[-1]) == (0, count - 1)
