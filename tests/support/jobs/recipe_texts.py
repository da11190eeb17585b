"""A small valid recipe as text, and changed copies of it, for tests."""

from __future__ import annotations

from pathlib import Path

from stationmaster.recipes.reading import read_recipe
from stationmaster.recipes.schema import Recipe

SMALL = """\
name: small
version: 1
title: A small recipe
description: Trains nothing, quickly.
parameters:
  steps: {type: int, default: 10, min: 1, max: 100, help: How many.}
  rate: {type: float, default: 1e-4, min: 0, help: How fast.}
  note: {type: str, default: "", max_length: 50, help: Any text.}
  quick: {type: bool, default: false, help: Whether to hurry.}
  size: {type: choice, choices: [s, m, "on"], default: m, help: Which size.}
steps:
  - name: train
    training: true
    argv:
      - trainer
      - "{{ job.name }}"
      - "--note={{ parameters.note }}"
      - {when: parameters.quick, argv: [--quick, "{{ parameters.steps }}"]}
    env: {TRIGGER: "{{ job.trigger }}"}
    timeout: 1h30m
    expect: ["output/{{ job.name | filename }}.safetensors"]
outputs:
  - {pattern: output/*.safetensors, kind: checkpoint, step: '_(\\d+)\\.safetensors$'}
resume:
  argv: [--from, "{{ resume.checkpoint }}"]
time: {seconds_per_step: 2.0, fixed: 1m}
"""


def small(*changes: tuple[str, str]) -> str:
    """The small recipe with pieces of its text replaced."""
    text = SMALL
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def small_recipe(*changes: tuple[str, str]) -> Recipe:
    return read_recipe(small(*changes), file="recipe.yaml")


def write_recipe(registry: Path, name: str, text: str, *, file: str = "recipe.yaml") -> Path:
    folder = registry / name
    folder.mkdir(parents=True)
    (folder / file).write_text(text, encoding="utf-8")
    return folder / file
