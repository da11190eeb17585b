"""`stationmaster simulator`: a Vast.ai on this computer, with machines that are real."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from stationmaster.cli.context import finite, options_of, with_hint
from stationmaster.cli.logging import service_logging
from stationmaster.errors import ConfigInvalid
from stationmaster.settings.documents import read_yaml
from stationmaster.simulator.cloud import Pace
from stationmaster.simulator.faults import read_faults
from stationmaster.simulator.main import run


def simulator(
    context: typer.Context,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8765,
    api_key: Annotated[str, typer.Option(help="The key that its one account has.")] = "simulated-key",
    seed: Annotated[int, typer.Option(help="Another seed is another market.")] = 1,
    backend: Annotated[str, typer.Option(help="process (anywhere) or namespaces (Linux, root).")] = "process",
    faults: Annotated[Path | None, typer.Option(help="A script of faults to play.", show_default=False)] = None,
    credit: Annotated[
        float, typer.Option(min=0, max=1_000_000, help="Dollars on the account.", callback=finite)
    ] = 100.0,
    rate_limits: Annotated[
        float,
        typer.Option(
            min=0, max=1000, help="Share of the real service's pauses between calls that is asked for.", callback=finite
        ),
    ] = 1.0,
    speed: Annotated[
        float,
        typer.Option(
            min=1, max=1_000_000, help="How much faster than time machines start and bills grow.", callback=finite
        ),
    ] = 1.0,
) -> None:
    """Rent machines without an account: the API of Vast.ai, and throw-away hosts with SSH on this computer.

    Jobs use it with `--provider simulator` while it runs; any other client is pointed at the address it prints.

    Examples:

      stationmaster simulator --port 8765 --api-key test

      VAST_URL=http://127.0.0.1:8765 vastai --api-key test search offers
    """
    settings = options_of(context).settings()
    service_logging(settings.log_level)
    home = settings.home / "simulator"
    with with_hint("choose a home that you may write to: --home", unusable=ConfigInvalid):
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
    if faults is not None:
        _require_readable(faults)
    address = home / "address.json"

    def ready(url: str) -> None:
        fresh = address.with_suffix(".new")
        fresh.write_text(json.dumps({"url": url, "api_key": api_key, "rate_limit_scale": rate_limits}))
        fresh.chmod(0o600)
        fresh.replace(address)
        typer.echo(f"the simulator answers at {url} (API key: {api_key})")

    try:
        run(
            port=port,
            api_key=api_key,
            home=home,
            seed=seed,
            backend=backend,
            faults=faults,
            credit_usd=credit,
            clock_speed=speed,
            rate_limit_scale=rate_limits,
            pace=Pace(),
            path=options_of(context).machine_path(),
            ready=ready,
        )
    finally:
        address.unlink(missing_ok=True)


def _require_readable(faults: Path) -> None:
    """Raises ConfigInvalid, with a hint, for a script of faults that cannot be played."""
    hint = "write YAML or JSON, as in [{kind: …}]"
    try:
        with with_hint(hint, ConfigInvalid, unusable=ConfigInvalid):
            read_yaml(faults.read_text(encoding="utf-8"))
            read_faults(faults)
    except (ValueError, TypeError) as problem:
        raise ConfigInvalid(f"the faults cannot be read from {faults}: {problem}", hint=hint) from None
