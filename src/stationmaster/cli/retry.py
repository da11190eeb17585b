"""`stationmaster retry`: submit an ended job again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from stationmaster.cli.applied_lines import applied_lines
from stationmaster.cli.context import JobArgument, JsonOption, options_of, print_json, print_sentences, station_of
from stationmaster.cli.render import job_json, terms_lines
from stationmaster.cli.submitting import OfferOption, announce, submit_confirmed
from stationmaster.errors import UserError
from stationmaster.station.proposals import RetryRequest, Terms


def retry(
    context: typer.Context,
    job: JobArgument,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the old job's best checkpoint.")] = False,
    apply: Annotated[
        bool,
        typer.Option(
            "--apply-recommendations",
            help="Change the parameters as the job's analysis recommends: all advice that is critical or a warning. "
            "Info is applied only if --only names it.",
        ),
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT",
            help="Apply only this recommendation: its number in `analyze`, its lever (batch_size), its config path or "
            "the parameter. Repeatable.",
        ),
    ] = None,
    offer: OfferOption = None,
    new_id: Annotated[str | None, typer.Option("--id", help="Id of the new job.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show changes, time and cost; submit nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Submit an ended job again, as a new job at today's price.

    The new job has its own attempts and its own outcome. With --apply-recommendations it has other parameters, which
    are shown before you confirm.

    Examples:

      stationmaster retry cats --resume --yes

      stationmaster retry 7f3k2q9a --apply-recommendations --only batch_size --only 3
    """
    as_json = as_json or options_of(context).as_json
    if only and not apply:
        raise UserError("--only needs --apply-recommendations", hint="add --apply-recommendations")
    request = RetryRequest(
        job=job, resume=resume, id=new_id, apply_recommendations=apply, only=tuple(only or ()), offer=offer
    )
    with station_of(context) as station:
        if dry_run:
            return _print_terms(station.proposals.check(request), as_json=as_json)
        shown: list[Terms] = []

        def show(terms: Terms) -> Iterator[str]:
            shown.append(terms)
            if not as_json:
                yield from _lines(terms)

        submitted = submit_confirmed(context, station, request, shown=show, yes=yes)
        job_id = submitted.job.id
        if as_json:
            skipped = _skipped_json(shown[0]) if shown else []
            return print_json(
                {**job_json(station.jobs.view(job_id)), "skipped": skipped, "notes": list(submitted.notes)}
            )
        announce(submitted, f"submitted, a retry of {submitted.job.spec.retry_of}")
    return None


def _print_terms(terms: Terms, *, as_json: bool) -> None:
    if as_json:
        from stationmaster.station.wire.proposals import TermsDocument

        return print_json(TermsDocument.of(terms).model_dump(mode="json"))
    print_sentences(_lines(terms))
    typer.echo("dry run: nothing was submitted")
    return None


def _lines(terms: Terms) -> Iterator[str]:
    yield from applied_lines(terms.applied, terms.skipped)
    yield from terms_lines(terms)


def _skipped_json(terms: Terms) -> list[dict[str, Any]]:
    from stationmaster.station.wire.proposals import SkippedAdviceDocument

    return [SkippedAdviceDocument.of(one).model_dump(mode="json") for one in terms.skipped]
