"""Windows over a screen: a question before an action, and the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Label

from stationmaster.tui.lines import Line
from stationmaster.tui.palette import Palette
from stationmaster.tui.sources.base import Question
from stationmaster.tui.widgets.line_view import LineView


class QuestionScreen(ModalScreen[bool]):
    """True if the person says yes. Where something would be lost, the safe button is the first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape,q", "answer(False)", "No"),
        Binding("left,right,up,down", "app.focus_next", show=False),
    ]
    DEFAULT_CSS = """
    QuestionScreen { align: center middle; }
    QuestionScreen > Vertical { width: 64; max-width: 90%; height: auto; border: round $primary; padding: 0 1; }
    QuestionScreen Label { width: 1fr; margin-bottom: 1; }
    QuestionScreen Horizontal { height: auto; align-horizontal: right; }
    QuestionScreen Button { margin-left: 2; }
    """

    def __init__(self, question: Question) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        yes = Button(f"{self._question.answer} (y)", id="yes", compact=True)
        no = Button("Back (n)", id="no", compact=True)
        with Vertical():
            yield Label(self._question.text, markup=False)
            with Horizontal():
                yield from (no, yes) if self._question.is_grave else (yes, no)

    def on_mount(self) -> None:
        self.query_one("#no" if self._question.is_grave else "#yes").focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)


class KeysScreen(ModalScreen[None]):
    """All keys; any of escape, enter, q and ? closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,q,question_mark", "dismiss", "Close")]
    DEFAULT_CSS = """
    KeysScreen { align: center middle; }
    KeysScreen > LineView { width: 62; max-width: 95%; max-height: 95%; border: round $primary; padding: 0 1; }
    """

    def __init__(self, lines: Sequence[Line], palette: Palette) -> None:
        super().__init__()
        self._lines = lines
        self._palette = palette

    def compose(self) -> ComposeResult:
        yield LineView(id="keys")

    def on_mount(self) -> None:
        view = self.query_one(LineView)
        view.styles.height = len(self._lines) + 2
        view.set_palette(self._palette)
        view.show(self._lines)

    def on_click(self) -> None:
        self.dismiss()
