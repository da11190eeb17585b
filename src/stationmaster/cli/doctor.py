"""`stationmaster doctor`: is everything in place?"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from stationmaster.cli.context import JsonOption, Options, options_of, print_json

if TYPE_CHECKING:
    from stationmaster.settings import Settings

_UNIT = """[Unit]
Description=Stationmaster worker
After=network-online.target

[Service]
ExecStart={python} -m stationmaster --home {home} worker
Restart=always
RestartSec=5
UMask=0077

[Install]
WantedBy=default.target
"""


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    ok: bool
    detail: str
    hint: str = ""


def doctor(
    context: typer.Context,
    service: Annotated[
        bool, typer.Option("--service", help="Print a systemd user unit that keeps a worker alive.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check settings, store, worker and tools. Exit code 1 if something needs a hand.

    Examples:

      stationmaster doctor

      stationmaster doctor --service > ~/.config/systemd/user/stationmaster.service
    """
    options = options_of(context)
    settings = options.settings()
    if service:
        typer.echo(_UNIT.format(python=sys.executable, home=settings.home), nl=False)
        return
    findings = list(_findings(options, settings))
    if as_json or options.as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            typer.echo(f"{'ok ' if finding.ok else 'BAD'}  {finding.check:<10} {finding.detail}")
            if finding.hint:
                typer.echo(f"     hint: {finding.hint}")
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


def _findings(options: Options, settings: Settings) -> Iterator[Finding]:
    from stationmaster import __version__

    yield Finding("version", True, f"stationmaster {__version__}, Python {sys.version.split()[0]}")
    yield Finding("settings", True, f"home {settings.home}, provider {settings.provider}")
    yield from _store_findings(settings)
    yield _disk(settings)
    yield from _bucket_findings(settings)
    yield from _tool_findings()
    yield from _demo_findings()


def _store_findings(settings: Settings) -> Iterator[Finding]:
    from stationmaster.control.background import running_worker
    from stationmaster.control.opening import open_store
    from stationmaster.errors import StationmasterError

    try:
        store = open_store(settings)
    except StationmasterError as problem:
        yield Finding("store", False, str(problem), problem.hint or "")
        return
    try:
        kind = "SQLite" if settings.uses_sqlite else "PostgreSQL"
        yield Finding("store", True, f"{kind}, installation {store.installation_id}")
        waiting = store.jobs.count_needing_a_worker()
        worker = running_worker(settings.home)
        if worker is not None:
            yield Finding("worker", True, f"running (pid {worker.pid}, version {worker.version}, log {worker.log})")
        elif waiting:
            hint = "any command starts one; `stationmaster doctor --service` prints a unit that keeps it alive"
            yield Finding("worker", False, f"none is running and {waiting} job(s) or machine(s) wait", hint)
        else:
            yield Finding("worker", True, "none is running, none is needed")
        for alert in store.alerts.open():
            yield Finding("alert", False, f"{alert.job_id or ''} {alert.message}".strip())
    finally:
        store.close()


def _disk(settings: Settings) -> Finding:
    free = shutil.disk_usage(settings.home).free / 1024**3
    return Finding("disk", free > 1, f"{free:.1f} GiB free", "" if free > 1 else "free some room for models")


def _bucket_findings(settings: Settings) -> Iterator[Finding]:
    """Nothing where no bucket is set; else whether it can be written to."""
    from stationmaster.delivery.r2 import open_bucket
    from stationmaster.errors import StationmasterError

    try:
        bucket = open_bucket(settings.bucket)
        if bucket is None:
            return
        try:
            checked = "checks checksums" if bucket.checks_sums else "does not check checksums; home reads files back"
        finally:
            bucket.close()
    except StationmasterError as problem:
        yield Finding("bucket", False, str(problem), problem.hint or "")
        return
    yield Finding("bucket", True, f"{bucket.location()} can be written, and {checked}")


def _tool_findings() -> Iterator[Finding]:
    for tool, purpose in (("ssh", "a shell on rented machines"), ("rsync", "faster transfers")):
        found = shutil.which(tool)
        yield Finding(tool, True, found or f"not found; only needed for {purpose}")


def _demo_findings() -> Iterator[Finding]:
    from importlib.util import find_spec

    there = find_spec("numpy") is not None
    hint = "" if there else "pip install 'stationmaster[demo]'"
    yield Finding("demo", True, "NumPy is there" if there else "NumPy is missing: the demo cannot run", hint)
