"""`stationmaster doctor`: checks of this installation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import typer

from stationmaster.cli.context import JsonOption, print_json, require_this_computer, station_of
from stationmaster.cli.speaking import coloured, is_quiet, write_drawn
from stationmaster.cli.systemd_unit import unit_of
from stationmaster.printable import one_line
from stationmaster.station.checks import CheckLevel, CheckResult, WorkerService

_COLOURS = {CheckLevel.OK: "green", CheckLevel.WARN: "yellow", CheckLevel.FAIL: "red"}
_LEVEL_WIDTH = max(map(len, CheckLevel))


def doctor(
    context: typer.Context,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask no service: no account, bucket or notification channel.")
    ] = False,
    service: Annotated[
        bool, typer.Option("--service", help="Print a systemd user unit that keeps a worker alive.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check this computer, settings, store, accounts, channels.

    Each check is ok, warn or fail, with what to do about it. Exit code 1 if a check fails, not for warnings. With
    --quiet, prints only checks that are not ok. Channels are asked without sending a message. With --service, the
    settings in this terminal's environment are written to worker.env in the home, which only you can read: the unit
    names that file and holds no secret.

    Examples:

      stationmaster doctor --offline

      stationmaster doctor --service > ~/.config/systemd/user/stationmaster.service
    """
    if service:
        require_this_computer(context, "doctor --service")
    with station_of(context, wake=False) as station:
        if service:
            return _print_unit(station.checks.worker_service())
        results = station.checks.results(offline=offline)
    if as_json:
        from stationmaster.station.wire.checks import CheckDocument

        print_json([CheckDocument.of(result).model_dump(mode="json") for result in results])
    else:
        _show(results)
    if not all(result.ok for result in results):
        raise typer.Exit(1)
    return None


def _show(results: Sequence[CheckResult]) -> None:
    width = max(len(result.check) for result in results)
    for result in results:
        if is_quiet() and result.level is CheckLevel.OK:
            continue
        level = coloured(result.level.value, _COLOURS[result.level]) + " " * (_LEVEL_WIDTH - len(result.level))
        write_drawn(f"{level}  {result.check:<{width}}  {one_line(result.detail)}")
        if result.hint and result.level is not CheckLevel.OK:
            write_drawn(f"{'':<{_LEVEL_WIDTH}}  {'':<{width}}  {coloured('hint:', 'cyan')} {one_line(result.hint)}")
    if not is_quiet():
        write_drawn(summary(results))


def summary(results: Sequence[CheckResult]) -> str:
    """How many checks ended how: `18 ok, 1 warning, 1 failure`."""
    counts = Counter(result.level for result in results)
    warnings, failures = counts[CheckLevel.WARN], counts[CheckLevel.FAIL]
    return f"{counts[CheckLevel.OK]} ok, {_count(warnings, 'warning')}, {_count(failures, 'failure')}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _print_unit(service: WorkerService) -> None:
    typer.echo(unit_of(service), nl=False)
    names = ", ".join(service.variables) or "no setting"
    typer.echo(f"note: {service.environment_file} (mode 0600) has from this environment: {names}", err=True)
    typer.echo("hint: run this again when one changes; `loginctl enable-linger` keeps it after you log out", err=True)
