"""`stationmaster demo`: a real training from start to finished model, without an account or a GPU.

The machine is rented from a simulated Vast.ai on this computer: offers, order, SSH login, release and bill work as with
the real one.
"""

from __future__ import annotations

import socket
import subprocess
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from stationmaster.cli.answers import DemoResult
from stationmaster.cli.context import JsonOption, local_station_of, options_of, print_document, print_sentences
from stationmaster.cli.demo_page import is_attended, page_beside, show_until_interrupted
from stationmaster.cli.job_facts import NextStep
from stationmaster.cli.live import follow
from stationmaster.cli.render import EXIT_CODES, quote_lines
from stationmaster.cli.speaking import extra
from stationmaster.cli.submitting import ensure_worker, prepare_worker
from stationmaster.errors import ProviderError
from stationmaster.station.jobs import JobView
from stationmaster.station.local.station import LocalStation
from stationmaster.station.proposals import Terms, TrainRequest

_NAME = "demo"
_START_SECONDS = 30.0


def demo(
    context: typer.Context,
    steps: Annotated[int, typer.Option(min=1, help="Steps to train; 600 take about a minute.")] = 600,
    pace: Annotated[float, typer.Option(min=0, help="Minimum seconds per step; 0 for full speed.")] = 0.1,
    web: Annotated[bool, typer.Option("--web/--no-web", help="Show the training on the page too.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Train a tiny LoRA on a simulated Vast.ai on this computer.

    Needs no account and no GPU. Shows the training live, from the rental to the model, here and on the page. At a
    terminal, the page stays until Ctrl-C.

    Examples:

      stationmaster demo

      stationmaster demo --steps 100 --json
    """
    options = options_of(context)
    as_json = as_json or options.as_json
    has_page = web and not as_json and not options.environ.get("CI")
    with (
        local_station_of(context) as station,
        page_beside(context) if has_page else nullcontext() as page,
        _simulator(context, station),
    ):
        request = _request(station, steps=steps, pace=pace)
        proposal = station.proposals.propose(request)
        if not as_json:
            _introduce(proposal.terms)
        prepare_worker(context, station)
        job = station.proposals.submit(proposal.id).job
        if page is not None:
            typer.echo(
                f"on the page (the link signs you in once, within 10 minutes):\n  {page.link_to(f'/jobs/{job.id}')}\n"
            )
        _start_worker(context, station, as_json=as_json)
        more = _next_steps(job.id)
        code = follow(station, job.id, as_json=False, more=more) if not as_json else _wait(station, job.id)
        view = station.jobs.view(job.id)
        if as_json:
            print_document(_result(view))
        elif view.job.outcome is not None:
            extra("The bill is play money.")
            if page is not None and is_attended():
                show_until_interrupted(page, station, f"/jobs/{job.id}", options)
    raise typer.Exit(code)


def _request(station: LocalStation, *, steps: int, pace: float) -> TrainRequest:
    sample = station.datasets.write_sample()
    every = max(1, steps // 6)
    return TrainRequest(
        recipe="tiny-lora@1",
        dataset=sample.folder,
        name=_NAME,
        trigger=sample.trigger,
        parameters={"steps": steps, "seconds_per_step": pace, "save_every": every, "sample_every": every},
        provider="simulator",
    )


@contextmanager
def _simulator(context: typer.Context, station: LocalStation) -> Iterator[None]:
    """Run a simulated Vast.ai during the demo; one that already runs is used and left running."""
    home = station.processes.home
    if station.processes.has_simulator():
        yield
        return
    log = home / "simulator.log"
    command = [*options_of(context).own_command, "--home", str(home), "simulator", "--port", str(_port(home))]
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*command, "--rate-limits", "0"], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
    try:
        _wait_for_simulator(process, station, log)
        yield
    finally:
        process.terminate()
        process.wait()


def _port(home: Path) -> int:
    """The same port for a home each time, if it is free: a worker left from the last demo knows that address.

    Below the ephemeral range, so that no other program gets it by chance.
    """
    wanted = 20_000 + zlib.crc32(str(home).encode()) % 10_000
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            return 0
    return wanted


def _wait_for_simulator(process: subprocess.Popen[bytes], station: LocalStation, log: Path) -> None:
    ends = time.monotonic() + _START_SECONDS
    while not station.processes.has_simulator():
        if process.poll() is not None or time.monotonic() > ends:
            raise ProviderError("the simulator did not start", hint=f"see {log}")
        time.sleep(0.05)


def _introduce(terms: Terms) -> None:
    typer.echo("A real, small training: the machine is rented from a simulated Vast.ai on this computer.")
    typer.echo("No account, no GPU, and the bill is play money.\n")
    print_sentences(quote_lines(terms))
    typer.echo("")


def _start_worker(context: typer.Context, station: LocalStation, *, as_json: bool) -> None:
    worker = ensure_worker(context, station)
    if worker.is_new and not as_json:
        typer.echo(f"worker started in the background (pid {worker.pid}, log {worker.log})\n")


def _wait(station: LocalStation, job_id: str) -> int:
    view = station.jobs.view(job_id)
    for view in station.jobs.watch(job_id):  # noqa: B007 (only the last one is needed)
        pass
    return EXIT_CODES[view.job.outcome] if view.job.outcome else 1


def _result(view: JobView) -> DemoResult:
    job = view.job
    return DemoResult(
        job=job.id,
        outcome=job.outcome,
        reason=job.reason,
        model=job.model.address,
        steps=job.progress.step,
        first_loss=job.progress.first_loss,
        last_loss=job.progress.loss,
        cost_usd=view.cost / 1_000_000,
        machines_left=sum(rental.gone_at is None for rental in view.rentals),
        seconds=None if job.ended_at is None else round(view.taken_seconds, 1),
    )


def _next_steps(job_id: str) -> list[NextStep]:
    return [
        NextStep(f"show {job_id} --events", "what happened, step by step"),
        NextStep(f"logs {job_id}", "what the trainer printed"),
        NextStep("up --open", "all of it on the page"),
        NextStep("train --recipe tiny-lora@1 --dataset YOUR_IMAGES --watch", "the same with your own images"),
    ]
