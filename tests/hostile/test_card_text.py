"""A model's card is published under your name: what a dataset, a trainer or a machine wrote in it is only text."""

from __future__ import annotations

import yaml

from stationmaster.delivery.model_card import Card, EarlyEnd, Sample, render_card
from tests.support.jobs.hostile_texts import CONTROLS, ESCAPES

FORGED = (
    f"x\n---\nlicense: mit\n---\n# Forged\n\n```\n<script>alert(1)</script><img src=x onerror=y>[a](https://evil.example)"
    f"\u2028| a | b |{ESCAPES}"
)


def card(text: str) -> str:
    return render_card(
        Card(
            name=text,
            recipe="flux-lora@2",
            file_name=text,
            sha256="a" * 64,
            framework=text,
            trigger=text,
            base_model="black-forest-labs/FLUX.1-dev",
            samples=(Sample(url="samples/1.jpg", text=text),),
            parameters={text: text},
            facts={text: text},
            early_end=EarlyEnd(reason=text, target_steps=4, completed_steps=2, stalled=False),
        )
    )


def parts(text: str) -> tuple[object, list[str]]:
    """The front matter, and the lines below it."""
    _, front, body = text.split("---\n", 2)
    return yaml.safe_load(front), body.split("\n")


def test_no_text_of_others_adds_a_line_or_a_tag_to_a_card() -> None:
    (front, forged), (_, honest) = parts(card(FORGED)), parts(card("x"))
    assert isinstance(front, dict)
    assert "license" not in front
    assert front["instance_prompt"] == FORGED, "it is data"
    assert [line[:2] for line in forged] == [line[:2] for line in honest]


def test_no_text_of_others_is_markup_or_hides_in_a_card() -> None:
    _, lines = parts(card(FORGED))
    assert not any(CONTROLS.search(line) for line in lines)
    code = [number for number, line in enumerate(lines) if line.startswith("```")]
    outside = [line for number, line in enumerate(lines) if not code[0] <= number <= code[1]]
    for line in outside:
        shown = "".join(line.split("`")[::2])  # without what is code within the line
        assert "<script" not in shown.replace("\\<", ""), line
        assert "[a](" not in shown.replace("\\[", ""), line
