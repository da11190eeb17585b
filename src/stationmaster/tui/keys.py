"""The keys of each screen, with the words for the footer and for the help."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from textual.binding import Binding, BindingType

from stationmaster.tui.lines import Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """`shown` is its name in the footer; without one only the help lists it."""

    keys: str
    action: str
    help: str
    shown: str = ""
    label: str = ""  # how the help writes the key, where that differs from `keys`
    is_first: bool = False  # acts before the next key is looked at

    def binding(self) -> Binding:
        return Binding(self.keys, self.action, self.shown or self.help, show=bool(self.shown), priority=self.is_first)


COMMON = (
    Key(keys="q", action="app.leave", help="quit", shown="Quit", label="q, Ctrl-C"),
    Key(keys="r", action="app.look_again", help="refresh now", shown="Refresh"),
    Key(keys="p", action="app.pause", help="pause or resume updates", shown="Pause"),
)

ABOUT_THE_APP = (
    Key(keys="question_mark", action="app.show_keys", help="show all keys", shown="Keys", label="?"),
    Key(keys="t", action="app.switch_theme", help="colours for a light or a dark background"),
)

ACTIONS = (
    Key(keys="x", action="act('stop')", help="stop the training and keep its model", shown="Stop"),
    Key(keys="X", action="act('cancel')", help="cancel the job and release its machine at once"),
    Key(keys="w", action="act('save')", help="have the training write a checkpoint now", shown="Save"),
    Key(keys="o", action="act('open')", help="open its page in the browser"),
    Key(keys="y", action="act('ssh')", help="copy the SSH command of its machine", shown="SSH"),
)

FLEET = (
    Key(keys="c", action="clear_logs", help="clear the log lines", shown="Clear"),
    Key(keys="slash", action="filter", help="show only rows with a text", shown="Filter", label="/", is_first=True),
    Key(keys="s", action="sort", help="sort by the next column", shown="Sort"),
    Key(keys="S", action="reverse", help="reverse the order"),
    Key(keys="g", action="group", help="next group", shown="Group"),
    Key(keys="enter", action="open", help="show the row in detail", shown="Open", label="Enter"),
    Key(keys="escape", action="reset", help="show all rows again", label="Escape"),
    Key(keys="up,k", action="move(-1)", help="one row up", label="Up, k"),
    Key(keys="down,j", action="move(1)", help="one row down", label="Down, j"),
    Key(keys="pageup", action="move(-20)", help="20 rows up", label="Page up"),
    Key(keys="pagedown", action="move(20)", help="20 rows down", label="Page down"),
    Key(keys="home", action="move(-100000)", help="first row", label="Home"),
    Key(keys="end", action="move(100000)", help="last row", label="End"),
)

DETAIL = (
    Key(keys="escape,backspace", action="back", help="back", shown="Back", label="Escape"),
    Key(keys="tab,right", action="next_tab(1)", help="next list", shown="Next list", label="Tab, Right"),
    Key(keys="shift+tab,left", action="next_tab(-1)", help="list before", label="Shift-Tab, Left"),
    Key(keys="1", action="tab(0)", help="the list of this number", label="1 to 5"),
    *(Key(keys=str(number), action=f"tab({number - 1})", help="") for number in range(2, 6)),
    Key(keys="slash", action="search", help="search the log", shown="Search", label="/", is_first=True),
    Key(keys="up,k", action="scroll(-1)", help="one line up", label="Up, k"),
    Key(keys="down,j", action="scroll(1)", help="one line down", label="Down, j"),
    Key(keys="pageup", action="scroll(-20)", help="20 lines up", label="Page up"),
    Key(keys="pagedown", action="scroll(20)", help="20 lines down", label="Page down"),
    Key(keys="home", action="scroll(-1000000)", help="first line", label="Home"),
    Key(keys="end", action="scroll(1000000)", help="last line, and follow", label="End"),
)


def bindings(*groups: Iterable[Key]) -> list[BindingType]:
    return [key.binding() for group in groups for key in group]


def help_lines(*groups: tuple[str, Iterable[Key]]) -> list[Line]:
    lines: list[Line] = []
    for title, keys in groups:
        lines.append(((title, "title"),))
        for key in keys:
            if key.help:
                lines.append(((f"  {key.label or key.keys:<16}", "accent"), (key.help, "")))
    return lines
