"""`vastai show instances --raw | stationmaster monitor --from -`: data from the pipe, keys from the terminal."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

from tests.support.terminal.tmux import RESTORED, Tmux


def test_the_app_gets_machines_from_a_pipe_and_keys_from_the_terminal(tmp_path: Path) -> None:
    row = {"id": 30007012, "actual_status": "running", "label": "cats", "gpu_name": "A100", "gpu_util": 50.0}
    listing = tmp_path / "machines.json"
    listing.write_text(json.dumps([row]))
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "STATIONMASTER_HOME": str(tmp_path / "home")}
    monitor = f"{shlex.quote(sys.executable)} -m stationmaster monitor --from - --interval 1"
    with Tmux(environ=environ, cwd=tmp_path) as terminal:
        terminal.start("sh", "-c", f"while cat {listing} && sleep 0.2; do :; done | {monitor}")
        terminal.until_shown("cats")
        listing.write_text(json.dumps([{**row, "label": "dogs"}]))
        terminal.until_shown("dogs")
        terminal.press("q")
        assert terminal.exit_code() == 0
        assert terminal.modes() == RESTORED
    assert not (tmp_path / "home").exists()
