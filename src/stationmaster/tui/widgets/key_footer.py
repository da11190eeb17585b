"""The footer with the keys of a screen, which are made anew whenever a screen comes to the front."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Footer


class KeyFooter(Footer):
    """Textual's footer, which keeps each key that it ever showed until its style changes: 12 widgets for every screen
    that is opened or closed, for as long as the app runs.
    """

    def __init__(self) -> None:
        super().__init__(show_command_palette=False, compact=True)

    def compose(self) -> ComposeResult:
        self.mutate_reactive(Footer.compact)  # forgets those that are no longer there
        yield from super().compose()
