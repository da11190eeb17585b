"""What a machine calls a file: only what the recipe declares counts, under a name that can be shown."""

from __future__ import annotations

import pytest

from stationmaster.control.results.declared_files import declared, has_safe_name, refused_events
from stationmaster.model import OutputFile
from stationmaster.recipes.schema import Output, OutputKind

OUTPUTS = (
    Output(pattern="output/*.safetensors", kind=OutputKind.CHECKPOINT),
    Output(pattern="output/**/*.png", kind=OutputKind.SAMPLE),
)


def named(path: str, kind: str = "checkpoint") -> OutputFile:
    return OutputFile(path=path, kind=kind, size=1, mtime=1.0, sha256="0" * 64)


TRICKS = [
    "../x.safetensors", "/etc/x.safetensors", "output/../../x.safetensors", "..", "", ".", "output/\x00b.safetensors",
    "output/\x1b[2Jm.safetensors", "output/m\r.safetensors", "output/a\u202e.safetensors", "output/\udc80.safetensors",
    "output/" + "x" * 2000 + ".safetensors",
]  # fmt: skip


@pytest.mark.parametrize("path", TRICKS)
def test_a_name_that_leads_out_or_plays_tricks_does_not_count(path: str) -> None:
    assert declared([named(path), named("output/m.safetensors")], OUTPUTS) == (named("output/m.safetensors"),)


@pytest.mark.parametrize("path", ["output/pytorch_model.bin", "m.safetensors", "output/a/m.safetensors", "x.png"])
def test_what_no_recipe_declared_does_not_count(path: str) -> None:
    assert declared([named(path)], OUTPUTS) == ()


def test_the_recipe_says_what_a_file_is_not_the_machine() -> None:
    found = declared([named("output/a/b/1.png", kind="checkpoint"), named("output/m.safetensors", kind="log")], OUTPUTS)
    assert [file.kind for file in found] == ["sample", "checkpoint"]


def test_what_was_refused_is_told_in_letters_that_a_terminal_only_shows() -> None:
    files = [named("output/m.safetensors"), *(named(f"output/{at}\x1b.bin") for at in range(7))]
    (events,) = refused_events(files, OUTPUTS)
    assert (events.kind, events.payload["count"], len(events.payload["files"])) == ("files_refused", 7, 5)
    assert all(name.isprintable() for name in events.payload["files"])
    assert refused_events(files[:1], OUTPUTS) == ()


@pytest.mark.parametrize("path", ["output/ünïcode 模型.safetensors", "output/a\u3000b.png", "output/.hidden/m.png"])
def test_names_of_people_s_own_languages_are_fair(path: str) -> None:
    assert has_safe_name(path)
