"""The columns of the fleet table: what each shows, how wide it is, and what it sorts by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len, set_cell_size

from stationmaster.durations import format_duration
from stationmaster.money import format_dollars
from stationmaster.tui.fleet import FleetRow, Tone

UNKNOWN = "N/A"
MARKS = {Tone.GOOD: "●", Tone.WARNING: "▲", Tone.BAD: "✖", Tone.NEUTRAL: "·"}

_WIDE = 120  # from this width on there is room for names and bars
_VERY_WIDE = 160
_FIGURES_WIDTH = 10  # of a progress with epochs and percent, beside its bar


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """`text` gets the row and the column's width. `toned`: shown in the row's colour."""

    title: str
    width: int
    text: Callable[[FleetRow, int], str]
    sort: Callable[[FleetRow], float | str | None] | None = None
    short: str = ""  # a title that fits where the whole one does not
    is_right: bool = True
    toned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A column with its place on the screen."""

    column: Column
    x: int
    width: int

    @property
    def title(self) -> str:
        """The column's title, or a shorter one where that does not fit."""
        title = self.column.title
        return title if len(title) <= self.width else self.column.short or title


def layout(width: int) -> list[Placed]:
    """The columns that fit. All ten figures fit into 80 characters; a wider screen adds names, bars and notes."""
    if width < _WIDE:
        return _placed(_FIGURES, width)
    is_very_wide = width >= _VERY_WIDE
    wider = {
        _GPU: 12 if is_very_wide else 8,
        _STATUS: 14 if is_very_wide else 13,
        _PROGRESS: _FIGURES_WIDTH + (20 if is_very_wide else 10),
    }
    mark, number, *figures = _FIGURES
    name = replace(_NAME, width=24) if is_very_wide else _NAME
    return _placed([mark, number, name, *(replace(each, width=wider.get(each, each.width)) for each in figures)], width)


def cell(row: FleetRow, placed: Placed) -> str:
    """The text of one cell, cut or filled to its width."""
    return fitted(placed.column.text(row, placed.width), placed.width, is_right=placed.column.is_right)


def fitted(text: str, width: int, *, is_right: bool) -> str:
    """
    >>> fitted("cancelled", 8, is_right=False), fitted("45m", 5, is_right=True)
    ('cancell…', '  45m')
    """
    size = cell_len(text)
    if size > width:
        return set_cell_size(text, width - 1) + "…"
    return " " * (width - size) + text if is_right else text + " " * (width - size)


def sortable(placed: Sequence[Placed]) -> list[str]:
    return [each.column.title for each in placed if each.column.sort is not None]


def percent(value: float | None) -> str:
    """
    >>> percent(85.24), percent(100.0), percent(None)
    ('85.2%', '100%', 'N/A')
    """
    if value is None:
        return UNKNOWN
    return f"{value:.1f}%" if value < 99.95 else f"{value:.0f}%"


def bar(share: float | None, width: int) -> str:
    """
    >>> bar(50.0, 6)
    '███───'
    """
    filled = 0 if share is None else max(0, min(width, round(width * share / 100)))
    return "█" * filled + "─" * (width - filled)


def progress_text(row: FleetRow, width: int) -> str:
    share = UNKNOWN if row.progress is None else f"{row.progress:.0f}%"
    epochs = f"{row.epoch:.0f}/{row.total_epochs}" if row.epoch and row.total_epochs else ""
    if width > _FIGURES_WIDTH:
        figures = f"{epochs:>5} {share:>4}" if len(epochs) <= 5 else f"{share:>10}"
        return bar(row.progress, width - _FIGURES_WIDTH) + figures
    both = f"{epochs} {share}".strip() if row.progress is not None or not epochs else epochs
    return both if cell_len(both) <= width else share


def _placed(columns: Sequence[Column], width: int) -> list[Placed]:
    """The columns side by side, and a note where there is room for one."""
    placed, x = [], 0
    for column in columns:
        placed.append(Placed(column=column, x=x, width=column.width))
        x += column.width + (column.title != "")
    if width - x >= _NOTE.width:
        placed.append(Placed(column=_NOTE, x=x, width=width - x))
    return placed


def _status(row: FleetRow, width: int) -> str:
    return f"{row.icon} {row.status}" if row.icon else row.status


def _money(row: FleetRow) -> str:
    return "-" if row.cost_per_hour is None else format_dollars(row.cost_per_hour, 3)


_MARK = Column(title="", width=1, text=lambda row, _: MARKS[row.tone], is_right=False, toned=True)
_ID = Column(title="ID", width=8, text=lambda row, _: row.id, sort=lambda row: row.id, is_right=False)
_NAME = Column(title="Name", width=14, text=lambda row, _: row.name, sort=lambda row: row.name, is_right=False)
_GPU = Column(title="GPU", width=8, text=lambda row, _: row.gpu or UNKNOWN, sort=lambda row: row.gpu, is_right=False)
_STATUS = Column(title="Status", width=11, text=_status, sort=lambda row: row.status, is_right=False, toned=True)
_PROGRESS = Column(title="Progress", short="Prog", width=7, text=progress_text, sort=lambda row: row.progress)
_GPU_PERCENT = Column(
    title="GPU%", width=5, text=lambda row, _: percent(row.gpu_percent), sort=lambda row: row.gpu_percent
)
_MEMORY_PERCENT = Column(
    title="Mem%", width=5, text=lambda row, _: percent(row.memory_percent), sort=lambda row: row.memory_percent
)
_LOSS = Column(
    title="Loss",
    width=6,
    text=lambda row, _: UNKNOWN if row.loss is None else f"{row.loss:.3f}",
    sort=lambda row: row.loss,
)
_RATE = Column(title="Cost/hr", width=7, text=lambda row, _: _money(row), sort=lambda row: row.cost_per_hour)
_TOTAL = Column(
    title="Total", width=7, text=lambda row, _: format_dollars(row.total_cost), sort=lambda row: row.total_cost
)
_ETA = Column(
    title="ETA",
    width=6,
    text=lambda row, _: "-" if row.is_over else format_duration(row.eta_seconds),
    sort=lambda row: row.eta_seconds,
)
_NOTE = Column(title="Note", width=12, text=lambda row, _: row.note, is_right=False)
_FIGURES = (_MARK, _ID, _GPU, _STATUS, _PROGRESS, _GPU_PERCENT, _MEMORY_PERCENT, _LOSS, _RATE, _TOTAL, _ETA)
