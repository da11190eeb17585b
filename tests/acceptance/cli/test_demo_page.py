"""The demo is on the page while it trains; for a person at a terminal it ends with the page on the finished run.

In a pipe the page ends with the training: see tests/acceptance/test_rental.py.
"""

from __future__ import annotations

import json
import re
import shlex
import socket
import sys
from pathlib import Path

import pytest

from tests.support.commands.cli_runs import Home
from tests.support.commands.command_line import command_server
from tests.support.commands.terminal import CTRL_C, at_terminal
from tests.support.waiting import until

QUICK = ("demo", "--steps", "3", "--pace", "0")
LINK = re.compile(r"http://127\.0\.0\.1:\d+/sign-in\?next=/jobs/\w+#\S+")

# A browser: it signs in with the code of its link, and notes where it was sent and what it saw there.
BROWSER = """
import json, pathlib, sys, urllib.parse, urllib.request
link = urllib.parse.urlsplit(sys.argv[2])
base, then = f"{link.scheme}://{link.netloc}", urllib.parse.parse_qs(link.query)["next"][0]
body, kind = json.dumps({"code": link.fragment}).encode(), {"Content-Type": "application/json"}
with urllib.request.urlopen(urllib.request.Request(f"{base}/api/session", body, kind)) as signed_in:
    cookie = {"Cookie": signed_in.headers["Set-Cookie"].split(";")[0]}
with urllib.request.urlopen(base + then) as page:
    kind = page.headers["Content-Type"]
with urllib.request.urlopen(urllib.request.Request(f"{base}/api{then}", headers=cookie)) as job:
    found = {"link": sys.argv[2], "kind": kind, "outcome": json.load(job)["outcome"]}
pathlib.Path(sys.argv[1]).write_text(json.dumps(found))
print("chatter of a browser")
"""


def test_at_a_terminal_the_page_of_the_run_is_opened_and_stays_until_ctrl_c(home: Home, tmp_path: Path) -> None:
    browser, seen = tmp_path / "browser.py", tmp_path / "seen.json"
    browser.write_text(BROWSER)

    def interrupt() -> str:
        until(seen.exists, "the browser's visit")
        return CTRL_C

    with socket.create_server(("127.0.0.1", 0)) as taken:
        environ = {
            **home.environ,
            "STATIONMASTER_SERVE__PORT": str(taken.getsockname()[1]),
            "BROWSER": f"{sys.executable} {shlex.quote(str(browser))} {shlex.quote(str(seen))} %s",
        }
        answers = {"stays until you press Ctrl-C": interrupt}
        ran = at_terminal(
            [command_server().own_command, *QUICK], environ=environ, cwd=tmp_path, answers=answers, seconds=150
        )
    assert ran.code == 0, ran.shown
    links = LINK.findall(ran.shown)
    assert len(links) == 2, "one while it trains, one at its end"
    assert json.loads(seen.read_text()) == {
        "link": links[1],
        "kind": "text/html; charset=utf-8",
        "outcome": "COMPLETED",
    }
    assert "COMPLETED" in ran.shown
    assert "The page is closed" in ran.shown
    assert "chatter" not in ran.shown


@pytest.mark.slow
@pytest.mark.parametrize("how", ["in CI", "with --no-web"])
def test_elsewhere_there_is_no_page(home: Home, tmp_path: Path, how: str) -> None:
    argv = [command_server().own_command, *QUICK, *(["--no-web"] if how == "with --no-web" else [])]
    environ = {**home.environ, **({"CI": "1"} if how == "in CI" else {})}
    ran = at_terminal(argv, environ=environ, cwd=tmp_path, answers={}, seconds=150)
    assert ran.code == 0, ran.shown
    assert "COMPLETED" in ran.shown
    assert "sign-in" not in ran.shown
    assert "Ctrl-C" not in ran.shown
