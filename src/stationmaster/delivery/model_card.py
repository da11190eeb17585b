"""Renders a model's card, which the Hub shows, from known facts only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from stationmaster.printable import words_of

#: Keyword in the name of a base model or recipe, tag and library of the family; narrower families come first.
_FAMILIES: tuple[tuple[str, str, str], ...] = (
    ("kontext", "flux-kontext", "diffusers"),
    ("flux", "flux", "diffusers"),
    ("stable-diffusion-xl", "stable-diffusion-xl", "diffusers"),
    ("sdxl", "stable-diffusion-xl", "diffusers"),
    ("stable-diffusion-3", "sd3", "diffusers"),
    ("stable-diffusion", "stable-diffusion", "diffusers"),
    ("llm", "llm", "peft"),
)

_FLUX_DEV = {
    "license": "other",
    "license_name": "flux-1-dev-non-commercial-license",
    "license_link": "https://huggingface.co/black-forest-labs/FLUX.1-dev/blob/main/LICENSE.md",
}

#: Licences of base models, which adapters inherit.
LICENCES: Mapping[str, Mapping[str, str]] = {
    "black-forest-labs/FLUX.1-dev": _FLUX_DEV,
    "black-forest-labs/FLUX.1-Kontext-dev": _FLUX_DEV,
    "black-forest-labs/FLUX.1-schnell": {"license": "apache-2.0"},
    "stabilityai/stable-diffusion-xl-base-1.0": {"license": "openrail++"},
}

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """An image in the repository, and the prompt that produced it."""

    url: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyEnd:
    """Why a training stopped before its last step."""

    reason: str
    target_steps: int | None
    completed_steps: int | None
    stalled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """Everything that a card can show."""

    name: str
    recipe: str
    file_name: str
    sha256: str
    framework: str | None = None
    trigger: str | None = None
    base_model: str | None = None
    licence: Mapping[str, str] = field(default_factory=dict)
    samples: Sequence[Sample] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)  # our metrics, formatted
    early_end: EarlyEnd | None = None


def family_of(recipe: str, base_model: str | None) -> str | None:
    """The family of a model, by its base model, else by its recipe's name.

    >>> family_of("flux-kontext-lora@2", "black-forest-labs/FLUX.1-Kontext-dev"), family_of("sdxl-lora@2", None)
    ('flux-kontext', 'stable-diffusion-xl')
    """
    return _known(recipe, base_model)[0]


def is_repository(base_model: str | None) -> bool:
    """Whether a base model is a Hub repository, not a local folder."""
    return base_model is not None and _REPOSITORY.fullmatch(base_model) is not None


def render_card(card: Card) -> str:
    """README.md: front matter by a YAML serialiser, so that quotes and colons in captions are safe; then text."""
    return f"---\n{_as_yaml(_front_matter(card))}---\n\n" + "\n".join(_body(card)) + "\n"


def _as_yaml(front: dict[str, Any]) -> str:
    """Unescaped Unicode where that is safe: some rare line breaks would read back as spaces."""
    readable = yaml.safe_dump(front, sort_keys=False, allow_unicode=True, width=1000)
    return readable if yaml.safe_load(readable) == front else yaml.safe_dump(front, sort_keys=False, width=1000)


def _front_matter(card: Card) -> dict[str, Any]:
    family, library = _known(card.recipe, card.base_model)
    front: dict[str, Any] = dict(card.licence)
    if library is not None:
        front["library_name"] = library
    if library == "diffusers":
        front["pipeline_tag"] = "text-to-image"
    front["tags"] = _tags(card, family)
    if is_repository(card.base_model):
        front["base_model"] = card.base_model
        front["base_model_relation"] = "adapter"
    if card.trigger:
        front["instance_prompt"] = card.trigger
    if card.samples:
        front["widget"] = [{"text": sample.text, "output": {"url": sample.url}} for sample in card.samples]
    return front


def _tags(card: Card, family: str | None) -> list[str]:
    own = [tag for tag in (family, "lora") if tag]
    if card.early_end is not None:
        return [*own, "incomplete"]
    _, library = _known(card.recipe, card.base_model)
    shown = ["text-to-image", "template:sd-lora"] if library == "diffusers" else []
    # A recipe without a base model has its own trainer, which may only imitate the log of a well-known one.
    trainer = [card.framework] if card.base_model and card.framework not in (None, "auto") else []
    return [*own, *shown, *trainer]


def _known(recipe: str, base_model: str | None) -> tuple[str | None, str | None]:
    for text in (base_model, recipe):
        for word, family, library in _FAMILIES:
            if text and word in text.lower():
                return family, library
    return None, None


def _body(card: Card) -> Iterator[str]:
    yield f"# {_plain(card.name)}"
    yield ""
    if card.early_end is not None:
        yield from _early_end(card.early_end)
    if card.samples:
        yield from ("<Gallery />", "")
    if card.trigger:
        yield from ("## Trigger words", "", f"Use `{_code(card.trigger)}` in the prompt.", "")
    yield from ("## Download", "", f"`{_code(card.file_name)}`, SHA-256 `{card.sha256}`.", "")
    yield from _usage(card)
    yield from ("## Training", "", "| | |", "|---|---|")
    known = {"recipe": card.recipe, **card.facts, **{name: str(value) for name, value in card.parameters.items()}}
    for name, value in known.items():
        yield f"| {_cell(name.replace('_', ' '))} | {_cell(value)} |"
    yield from ("", "Trained with Stationmaster.")


def _early_end(end: EarlyEnd) -> Iterator[str]:
    why = "due to training stall" if end.stalled else f"({_plain(end.reason)})"
    yield from (f"⚠️ **This model was terminated early {why}.**", "")
    if end.target_steps is not None:
        yield f"- Target steps: {end.target_steps}"
    if end.completed_steps is not None:
        share = f" ({100 * end.completed_steps / end.target_steps:.1f}%)" if end.target_steps else ""
        yield f"- Completed steps: {end.completed_steps}{share}"
    yield from (f"- Reason: {_plain(end.reason)}", "", "The model may still be usable but was not fully trained.", "")


def _usage(card: Card) -> Iterator[str]:
    _, library = _known(card.recipe, card.base_model)
    if library != "diffusers" or not is_repository(card.base_model):
        return
    yield from ("## Use", "", "```python", "from diffusers import AutoPipelineForText2Image", "")
    yield f'pipeline = AutoPipelineForText2Image.from_pretrained("{card.base_model}").to("cuda")'
    yield f'pipeline.load_lora_weights("PATH/TO/THIS/REPOSITORY", weight_name={card.file_name!r})'
    yield f"image = pipeline({_first_prompt(card)!r}).images[0]"
    yield from ("```", "")


def _first_prompt(card: Card) -> str:
    return card.samples[0].text if card.samples else (card.trigger or card.name)


def _plain(text: str) -> str:
    """One line, escaped for Markdown."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", words_of(text))


def _code(text: str) -> str:
    return words_of(text).replace("`", "'")


def _cell(text: str) -> str:
    return _plain(text[:500])
