"""`stationmaster credits`: the balances of users, every change to them, and a check that they add up."""

from __future__ import annotations

import csv
import getpass
import sys
from typing import Annotated, Any

import typer

from stationmaster.cli.context import JobArgument, JsonOption, options_of, print_json, station_of
from stationmaster.cli.help_pages import CommandGroup
from stationmaster.cli.table import Column, print_table
from stationmaster.durations import parse_duration
from stationmaster.errors import LedgerBroken, UserError
from stationmaster.model import EntryKind, LedgerEntry
from stationmaster.money import MicroDollars, Unit
from stationmaster.near_names import did_you_mean
from stationmaster.station.credits import GRANT_KINDS, Adjustment, CreditChange, Grant, RefundRequest
from stationmaster.station.wire.credits import (
    AccountChangeDocument,
    AccountDocument,
    EntryDocument,
    ProofDocument,
    RefundedDocument,
)
from stationmaster.times import date_text, time_text

app = CommandGroup(help="Manage the prepaid credits of users.")

_STATEMENT = (
    Column("TIME"),
    Column("KIND"),
    Column("CHANGE", right=True),
    Column("BALANCE", right=True),
    Column("HELD", right=True, leaves=1),
    Column("WHAT", shrinks_to=16),
)

UserArgument = Annotated[str, typer.Argument(metavar="USER", help="User; `me` is the single user of the settings.")]
SomeUser = Annotated[str | None, typer.Argument(metavar="[USER]", help="Only this user.", show_default=False)]
AmountArgument = Annotated[
    str, typer.Argument(metavar="AMOUNT", help="Amount in dollars, or in points if credits are points.")
]


def _some_words(value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise typer.BadParameter("must not be empty; the statement shows it")
    return value


ReasonOption = Annotated[str, typer.Option("--reason", help="Reason; shown in the statement.", callback=_some_words)]
KeyOption = Annotated[str | None, typer.Option("--id", help="Id of this change; repeating it changes nothing.")]

EXPORTED = (
    "seq", "at", "user", "kind", "balance_micros", "held_micros", "job", "attempt", "lot", "key", "note", "actor",
)  # fmt: skip


@app.command("show")
def show(context: typer.Context, user: SomeUser = None, as_json: JsonOption = False) -> None:
    """Show balances, held credits, and when credits expire.

    Examples:

      stationmaster credits show

      stationmaster credits show ann --json
    """
    with station_of(context, wake=False) as station:
        unit = station.credits.unit()
        accounts = [station.credits.account(user)] if user else station.credits.accounts()
    if as_json or options_of(context).as_json:
        return print_json([AccountDocument.of(account).model_dump(mode="json") for account in accounts])
    for account in accounts:
        typer.echo(f"{account.user:<20} {unit.show(account.balance)} to spend, {unit.show(account.held)} held")
        for lot in account.lots if user else ():
            until = "" if lot.expires_at is None else f", until {date_text(lot.expires_at)}"
            typer.echo(f"  {unit.show(lot.remaining)} of {unit.show(lot.amount)} from {date_text(lot.at)}{until}")
    if not accounts:
        typer.echo("no credits yet; to give some, run stationmaster credits grant USER AMOUNT --reason …")
    return None


@app.command("grant")
def grant(
    context: typer.Context,
    user: UserArgument,
    amount: AmountArgument,
    reason: ReasonOption,
    kind: Annotated[str, typer.Option("--as", help="Kind: grant, top-up or reward.")] = "grant",
    expires: Annotated[str | None, typer.Option(help="Time until they expire, e.g. 30d. Default: never.")] = None,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give a user credits: a gift, a paid top-up, or a reward.

    Credits that expire are spent first.

    Examples:

      stationmaster credits grant ann 25 --reason "welcome" --expires 30d

      stationmaster credits grant ann 50 --as top-up --reason "invoice 4711" --id invoice-4711
    """
    with station_of(context, wake=False) as station:
        unit = station.credits.unit()
        wanted = Grant(
            user=user,
            amount=_read(amount, unit),
            reason=reason,
            actor=_actor(),
            kind=_entry_kind(kind),
            expires_in=_seconds(expires),
            key=key,
        )
        given = station.credits.grant(wanted)
    _answer(context, given, unit, as_json=as_json)


@app.command("adjust", context_settings={"ignore_unknown_options": True})
def adjust(
    context: typer.Context,
    user: UserArgument,
    amount: Annotated[str, typer.Argument(metavar="AMOUNT", help="Amount to add; negative to subtract.")],
    reason: ReasonOption,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Correct a balance, up or down; it never goes below zero.

    Examples:

      stationmaster credits adjust ann 1.50 --reason "machine was slow"

      stationmaster credits adjust ann -3 --reason "granted twice"
    """
    with station_of(context, wake=False) as station:
        unit = station.credits.unit()
        wanted = Adjustment(user=user, amount=_read(amount, unit), reason=reason, actor=_actor(), key=key)
        adjusted = station.credits.adjust(wanted)
    _answer(context, adjusted, unit, as_json=as_json)


@app.command("refund")
def refund(
    context: typer.Context,
    job: JobArgument,
    reason: ReasonOption,
    amount: Annotated[
        str | None, typer.Argument(metavar="[AMOUNT]", help="Amount to refund. Default: all of it.")
    ] = None,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Refund what a job was charged, or part of it.

    Examples:

      stationmaster credits refund cats --reason "the samples were broken"

      stationmaster credits refund 4kd8 0.50 --reason "half of it"
    """
    with station_of(context, wake=False) as station:
        unit = station.credits.unit()
        part = None if amount is None else _read(amount, unit)
        wanted = RefundRequest(job=job, amount=part, reason=reason, actor=_actor(), key=key)
        refunded = station.credits.refund(wanted)
    if as_json or options_of(context).as_json:
        return print_json(RefundedDocument.of(refunded).model_dump(mode="json"))
    typer.echo(f"refunded {unit.show(refunded.amount)} for job {refunded.job_id}")
    return None


@app.command("statement")
def statement(context: typer.Context, user: UserArgument, as_json: JsonOption = False) -> None:
    """List every change to a user's credits, with the balance.

    Examples:

      stationmaster credits statement ann

      stationmaster credits statement ann --json
    """
    with station_of(context, wake=False) as station:
        unit = station.credits.unit()
        entries, now = list(station.credits.entries(user)), station.now()
    if as_json or options_of(context).as_json:
        return print_json([_entry_json(entry) for entry in entries])
    balance = held = 0
    rows = []
    for entry in entries:
        balance, held = balance + entry.balance, held + entry.held
        words = " ".join(filter(None, (_job_words(entry), entry.note)))
        amounts = unit.show(entry.balance), unit.show(balance), unit.show(held)
        rows.append((time_text(entry.at, now=now), entry.kind.value, *amounts, words))
    print_table(_STATEMENT, rows)
    return None


@app.command("export")
def export(context: typer.Context, user: SomeUser = None, as_json: JsonOption = False) -> None:
    """Print all ledger entries, or one user's, as CSV.

    Amounts are whole micro-dollars.

    Examples:

      stationmaster credits export > ledger.csv

      stationmaster credits export ann --json
    """
    with station_of(context, wake=False) as station:
        entries = station.credits.entries(user or None)
        if as_json or options_of(context).as_json:
            return print_json([_entry_json(entry) for entry in entries])
        writer = csv.DictWriter(sys.stdout, EXPORTED, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        for entry in entries:
            writer.writerow(_entry_json(entry))
    return None


@app.command("verify")
def verify(context: typer.Context, as_json: JsonOption = False) -> None:
    """Verify the whole ledger.

    Checks every account, lot, hold and charge against the entries. Exit code 61 if the ledger is broken.

    Examples:

      stationmaster credits verify

      stationmaster credits verify --json
    """
    with station_of(context, wake=False) as station:
        unit = station.credits.unit()
        proof = station.credits.prove()
    if as_json or options_of(context).as_json:
        print_json(ProofDocument.of(proof).model_dump(mode="json"))
    elif proof.holds:
        typer.echo("balances are the sums of their entries; holds, charges and returns match; nothing is below zero")
        spend, held = unit.show(proof.balance), unit.show(proof.held)
        typer.echo(f"the ledger is sound: {proof.entries} entries, {proof.accounts} users, {spend} and {held} held")
    else:
        for problem in proof.problems:
            typer.echo(problem)
    if not proof.holds:
        raise LedgerBroken(
            f"the ledger is not sound: {len(proof.problems)} problem(s)", hint="restore the store from a backup"
        )


def _entry_json(entry: LedgerEntry) -> dict[str, Any]:
    return EntryDocument.of(entry).model_dump(mode="json")


def _read(text: str, unit: Unit) -> MicroDollars:
    try:
        return unit.read(text)
    except ValueError as problem:
        raise UserError(str(problem), hint="for example: 12.50, or 125000 if credits are points") from None


def _entry_kind(kind: str) -> EntryKind:
    if kind not in GRANT_KINDS:
        hint = did_you_mean(kind, GRANT_KINDS) or f"use one of: {', '.join(GRANT_KINDS)}"
        raise UserError(f"{kind!r} is not a kind of credits", hint=hint)
    return GRANT_KINDS[kind]


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return parse_duration(text)
    except ValueError as problem:
        raise UserError(f"expires: {problem}", hint="for example: 30d; leave it out if they never expire") from None


def _actor() -> str:
    """The name of the user at this computer."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "operator"


def _answer(context: typer.Context, change: CreditChange, unit: Unit, *, as_json: bool) -> None:
    account = change.account
    if as_json or options_of(context).as_json:
        return print_json(AccountChangeDocument.after(change).model_dump(mode="json"))
    prefix = "" if change.changed else "already done; nothing was changed: "
    typer.echo(f"{prefix}{account.user} has {unit.show(account.balance)} to spend, {unit.show(account.held)} held")
    return None


def _job_words(entry: LedgerEntry) -> str:
    if entry.job is None:
        return ""
    return f"job {entry.job}" + ("" if entry.attempt is None else f", attempt {entry.attempt}")
