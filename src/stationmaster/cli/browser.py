"""Opens links in the person's browser. The link has been printed before: where none can be opened, that is enough."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Mapping
from urllib.parse import urlsplit

import typer

from stationmaster.cli.file_modes import persons_umask

# In a process of its own: some browsers are waited for, and some write into the terminal. The link comes by its input.
_OPEN = "import sys, webbrowser; sys.exit(not webbrowser.open(sys.stdin.read()))"
_PATIENCE_SECONDS = 10.0


def open_in_browser(url: str, environ: Mapping[str, str]) -> None:
    """Returns at once. If there is no browser, that is printed; it is never an error."""
    reason = why_no_browser(url, environ, platform=sys.platform)
    if reason is not None:
        typer.echo(f"no browser opened: {reason}", err=True)
        return
    threading.Thread(target=_open, args=(url, dict(environ)), name="browser", daemon=True).start()


def opened_or_reason(link: str, environ: Mapping[str, str]) -> str | None:
    """Open the link at the wish of an app, which shows the reason why that is not possible."""
    reason = why_no_browser(link, environ, platform=sys.platform)
    if reason is None:
        open_in_browser(link, environ)
    return reason


def why_no_browser(url: str, environ: Mapping[str, str], *, platform: str) -> str | None:
    """Why a browser of this computer is of no use here; None if one may be tried.

    >>> why_no_browser("http://127.0.0.1:8080/", {"SSH_CONNECTION": "…"}, platform="linux")
    'this is an SSH session; log in with ssh -L 8080:127.0.0.1:8080, then open the link on your own computer'
    >>> why_no_browser("http://127.0.0.1:8080/", {}, platform="linux")
    'this computer has no display; open the link yourself'
    >>> why_no_browser("http://127.0.0.1:8080/", {"DISPLAY": ":0"}, platform="linux")
    """
    if environ.get("BROWSER"):  # editors that work over SSH set it to a command that opens links at your end
        return None
    if environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"):
        parts = urlsplit(url)
        return (
            f"this is an SSH session; log in with ssh -L {parts.port}:{parts.hostname}:{parts.port}, "
            "then open the link on your own computer"
        )
    if platform != "darwin" and not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")):
        return "this computer has no display; open the link yourself"
    return None


def _open(url: str, environ: dict[str, str]) -> None:
    opening = subprocess.Popen(
        [sys.executable, "-P", "-c", _OPEN], env=environ, text=True, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True, umask=persons_umask(),
    )  # fmt: skip
    try:
        opening.communicate(url, timeout=_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:  # it is being waited for, so it is open
        return
    if opening.returncode != 0:
        typer.echo("no browser opened: none could be started; open the link yourself", err=True)
