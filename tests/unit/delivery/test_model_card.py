"""A model's card: well-formed whatever the captions hold, honest about early ends, silent about what is not known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from stationmaster.delivery.model_card import LICENCES, Card, EarlyEnd, Sample, family_of, render_card

FLUX = "black-forest-labs/FLUX.1-dev"
CARD = Card(
    name="My Cats",
    recipe="flux-lora@1",
    file_name="cats.safetensors",
    sha256="a" * 64,
    framework="ai-toolkit",
    trigger="ohwx cat",
    base_model=FLUX,
    licence=LICENCES[FLUX],
    samples=(Sample(url="samples/1.jpg", text='ohwx cat: "in a park"'),),
    parameters={"steps": 4000, "rank": 32},
    facts={"final loss": "0.093"},
)
STALLED = EarlyEnd(reason="ETA not converging", target_steps=4000, completed_steps=3500, stalled=True)


def front_matter(text: str) -> dict[str, Any]:
    _, front, _ = text.split("---\n", 2)
    found = yaml.safe_load(front)
    assert isinstance(found, dict)
    return found


def test_a_finished_model_says_what_it_is_and_what_it_came_from() -> None:
    front = front_matter(render_card(CARD))
    assert front["base_model"] == FLUX
    assert front["base_model_relation"] == "adapter"
    assert front["library_name"] == "diffusers"
    assert front["instance_prompt"] == "ohwx cat"
    assert front["license"] == "other"
    assert front["license_name"] == "flux-1-dev-non-commercial-license"
    assert front["widget"] == [{"text": 'ohwx cat: "in a park"', "output": {"url": "samples/1.jpg"}}]
    assert {"flux", "lora", "ai-toolkit"} <= set(front["tags"])
    assert "incomplete" not in front["tags"]


def test_only_a_model_of_a_known_base_is_tagged_with_its_trainer() -> None:
    """The small trainer of ours prints as ai-toolkit does, and is none."""
    own = replace(CARD, recipe="tiny-lora@1", base_model=None, licence={})
    assert front_matter(render_card(own))["tags"] == ["lora"]


def test_the_card_of_a_stalled_training_is_to_the_letter() -> None:
    text = render_card(replace(CARD, samples=(), early_end=STALLED))
    assert front_matter(text)["tags"] == ["flux", "lora", "incomplete"]
    assert text.split("---\n", 2)[2].startswith(
        "\n# My Cats\n"
        "\n"
        "⚠️ **This model was terminated early due to training stall.**\n"
        "\n"
        "- Target steps: 4000\n"
        "- Completed steps: 3500 (87.5%)\n"
        "- Reason: ETA not converging\n"
        "\n"
        "The model may still be usable but was not fully trained.\n"
    )


def test_an_early_end_for_another_reason_does_not_speak_of_a_stall() -> None:
    ended = replace(STALLED, reason="stopped by its owner", stalled=False)
    text = render_card(replace(CARD, early_end=ended))
    assert "stall" not in text
    assert "terminated early (stopped by its owner)" in text


def test_the_family_tag_is_the_models_own() -> None:
    card = replace(CARD, recipe="sdxl-lora@1", base_model="stabilityai/stable-diffusion-xl-base-1.0", early_end=STALLED)
    assert front_matter(render_card(card))["tags"] == ["stable-diffusion-xl", "lora", "incomplete"]


def test_what_is_not_known_is_not_said() -> None:
    bare = Card(name="x", recipe="tiny-lora@1", file_name="x.safetensors", sha256="b" * 64)
    front = front_matter(render_card(bare))
    assert front == {"tags": ["lora"]}


def test_a_base_model_in_a_folder_is_not_linked() -> None:
    assert "base_model" not in front_matter(render_card(replace(CARD, base_model="/models/flux-dev")))


@pytest.mark.parametrize(
    ("recipe", "base", "family"),
    [
        ("flux-kontext-lora@1", "black-forest-labs/FLUX.1-Kontext-dev", "flux-kontext"),
        ("mine@1", FLUX, "flux"),
        ("llm-lora@1", "Qwen/Qwen3-0.6B", "llm"),
        ("mine@1", None, None),
    ],
)
def test_families_are_told_apart(recipe: str, base: str | None, family: str | None) -> None:
    assert family_of(recipe, base) == family


@example(text="a\x85b\u2028c", trigger="\x85", name="x")
@given(text=st.text(min_size=1, max_size=80), trigger=st.text(max_size=40), name=st.text(min_size=1, max_size=40))
def test_whatever_a_caption_holds_stays_data(text: str, trigger: str, name: str) -> None:
    card = replace(CARD, name=name, trigger=trigger, samples=(Sample(url="samples/1.jpg", text=text),))
    front = front_matter(render_card(card))
    assert front["widget"][0]["text"] == text
    assert front.get("instance_prompt", "") == trigger
    assert set(front) <= {
        "license", "license_name", "license_link", "library_name", "pipeline_tag", "tags", "base_model",
        "base_model_relation", "instance_prompt", "widget",
    }  # fmt: skip
