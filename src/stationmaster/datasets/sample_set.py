"""Generates the demo's dataset: small landscapes, each with a caption."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from random import Random

from PIL import Image, ImageDraw

TRIGGER = "smland"
SIDE = 256

Colour = tuple[int, int, int]
Place = tuple[int, int]

_SCALE = 2  # drawn larger, then reduced, for smooth edges
_SKIES: tuple[tuple[str, Colour, Colour], ...] = (
    ("a golden evening sky", (250, 214, 137), (232, 120, 92)),
    ("a clear blue sky", (214, 236, 250), (86, 156, 220)),
    ("a violet dusk", (242, 180, 190), (92, 76, 150)),
    ("a pale morning sky", (252, 244, 220), (170, 206, 214)),
    ("a deep night sky", (60, 80, 130), (16, 20, 54)),
    ("a stormy grey sky", (206, 208, 210), (98, 108, 122)),
)
_HILLS: tuple[tuple[str, Colour], ...] = (
    ("green hills", (92, 148, 84)),
    ("autumn hills", (190, 120, 60)),
    ("snowy hills", (226, 234, 242)),
    ("lavender hills", (140, 116, 180)),
)


def write_sample_set(folder: Path, *, images: int = 12, seed: int = 7, trigger: str = TRIGGER) -> tuple[Path, ...]:
    """Draw `images` images of 256×256 with captions into `folder`; the same arguments give the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for index in range(images):
        random = Random(f"{seed}/{index}")  # one per image, so that a longer set begins like a shorter one
        picture, subject = _paint(index, random)
        path = folder / f"landscape_{index + 1:03d}.png"
        picture.save(path, format="PNG", compress_level=6)
        path.with_suffix(".txt").write_text(f"{trigger}, {subject}\n", encoding="utf-8")
        written.append(path)
    return tuple(written)


def _paint(index: int, random: Random) -> tuple[Image.Image, str]:
    motif_name, paint_motif = _MOTIFS[index % len(_MOTIFS)]
    sky_name, low, high = _SKIES[(index + index // len(_MOTIFS)) % len(_SKIES)]
    hills_name, hill_colour = _HILLS[(index + index // 4) % len(_HILLS)]
    size = SIDE * _SCALE
    picture = _gradient(size, top=high, bottom=low)
    draw = ImageDraw.Draw(picture)
    sun = (random.randint(size // 8, size * 7 // 8), random.randint(size // 8, size // 3))
    _disc(draw, sun, radius=random.randint(size // 16, size // 9), colour=_mixed(low, (255, 255, 240), 0.75))
    for depth in range(3):
        level = size * (0.55 + 0.12 * depth) + random.uniform(-12, 12)
        colour = _mixed(low, hill_colour, 0.45 + 0.25 * depth)
        _hill(draw, size, level=level, phase=random.uniform(0, 6), colour=colour)
    place = (random.randint(size // 4, size * 3 // 4), int(size * random.uniform(0.74, 0.86)))
    colour_name, colour = random.choice(_PAINTS)
    paint_motif(draw, place, size * random.uniform(0.9, 1.2) / 12, colour)
    reduced = picture.resize((SIDE, SIDE), Image.Resampling.LANCZOS)
    return reduced, f"a {colour_name} {motif_name} before {hills_name} under {sky_name}"


_PAINTS: tuple[tuple[str, Colour], ...] = (
    ("red", (200, 52, 48)),
    ("white", (244, 240, 232)),
    ("teal", (30, 130, 130)),
    ("yellow", (240, 196, 60)),
    ("orange", (238, 136, 52)),
)


def _gradient(size: int, *, top: Colour, bottom: Colour) -> Image.Image:
    column = Image.linear_gradient("L").resize((size, size))
    return Image.composite(Image.new("RGB", (size, size), bottom), Image.new("RGB", (size, size), top), column)


def _mixed(one: Colour, other: Colour, share: float) -> Colour:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


def _disc(draw: ImageDraw.ImageDraw, at: Place, *, radius: float, colour: Colour) -> None:
    x, y = at
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)


def _hill(draw: ImageDraw.ImageDraw, size: int, *, level: float, phase: float, colour: Colour) -> None:
    top = [(x, level + size * 0.05 * math.sin(phase + 7 * x / size)) for x in range(0, size + 8, 8)]
    draw.polygon([(0, size), *top, (size, size)], fill=colour)


def _house(draw: ImageDraw.ImageDraw, at: Place, unit: float, colour: Colour) -> None:
    x, y = at
    draw.rectangle((x - 1.5 * unit, y - 1.6 * unit, x + 1.5 * unit, y + unit), fill=colour)
    roof = _mixed(colour, (60, 30, 30), 0.6)
    draw.polygon([(x - 1.9 * unit, y - 1.6 * unit), (x, y - 3 * unit), (x + 1.9 * unit, y - 1.6 * unit)], fill=roof)
    draw.rectangle((x - 0.4 * unit, y - 0.4 * unit, x + 0.4 * unit, y + unit), fill=roof)


def _tree(draw: ImageDraw.ImageDraw, at: Place, unit: float, colour: Colour) -> None:
    x, y = at
    draw.rectangle((x - 0.3 * unit, y - unit, x + 0.3 * unit, y + 1.4 * unit), fill=(92, 64, 44))
    for dx, dy in ((-0.9, -1.3), (0.9, -1.3), (0.0, -2.4)):
        _disc(draw, (round(x + dx * unit), round(y + dy * unit)), radius=1.3 * unit, colour=colour)


def _train(draw: ImageDraw.ImageDraw, at: Place, unit: float, colour: Colour) -> None:
    x, y = at
    draw.line((0, y + unit, SIDE * _SCALE, y + unit), fill=(70, 62, 58), width=max(2, round(unit / 4)))
    for wagon in range(3):
        left = x + (wagon - 1.5) * 2.6 * unit
        draw.rounded_rectangle((left, y - unit, left + 2.3 * unit, y + 0.4 * unit), radius=unit / 4, fill=colour)
        for wheel in (0.5, 1.8):
            _disc(draw, (round(left + wheel * unit), round(y + 0.6 * unit)), radius=0.4 * unit, colour=(40, 40, 44))


def _balloon(draw: ImageDraw.ImageDraw, at: Place, unit: float, colour: Colour) -> None:
    x, y = at[0], at[1] - round(5 * unit)
    draw.line((x - 0.9 * unit, y, x - 0.4 * unit, y + 2.6 * unit), fill=(80, 70, 60), width=2)
    draw.line((x + 0.9 * unit, y, x + 0.4 * unit, y + 2.6 * unit), fill=(80, 70, 60), width=2)
    _disc(draw, (x, y), radius=1.7 * unit, colour=colour)
    draw.rectangle((x - 0.5 * unit, y + 2.4 * unit, x + 0.5 * unit, y + 3.2 * unit), fill=(120, 84, 52))


def _signal(draw: ImageDraw.ImageDraw, at: Place, unit: float, colour: Colour) -> None:
    x, y = at
    draw.rectangle((x - 0.2 * unit, y - 4.5 * unit, x + 0.2 * unit, y + 1.2 * unit), fill=(60, 62, 66))
    arm = [(x, y - 4.2 * unit), (x + 2.8 * unit, y - 5 * unit), (x + 2.9 * unit, y - 4.3 * unit), (x, y - 3.5 * unit)]
    draw.polygon(arm, fill=colour)


def _boat(draw: ImageDraw.ImageDraw, at: Place, unit: float, colour: Colour) -> None:
    x, y = at
    size = SIDE * _SCALE
    draw.rectangle((0, y + 0.6 * unit, size, size), fill=(70, 130, 170))
    draw.polygon([(x, y - 3.4 * unit), (x, y - 0.3 * unit), (x + 2 * unit, y - 0.3 * unit)], fill=colour)
    hull = [(x - 1.8 * unit, y), (x + 2.2 * unit, y), (x + 1.5 * unit, y + unit), (x - 1.2 * unit, y + unit)]
    draw.polygon(hull, fill=(110, 70, 46))


Motif = Callable[[ImageDraw.ImageDraw, Place, float, Colour], None]
_MOTIFS: tuple[tuple[str, Motif], ...] = (
    ("train", _train),
    ("house", _house),
    ("balloon", _balloon),
    ("tree", _tree),
    ("signal", _signal),
    ("sailing boat", _boat),
)
