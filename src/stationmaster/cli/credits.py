"""`stationmaster credits`: what people can spend, where it came from, where it went, and the proof that it adds up."""

from __future__ import annotations

import csv
import getpass
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stationmaster.cli.context import JobArgument, JsonOption, options_of, print_json, station_of

if TYPE_CHECKING:
    from stationmaster.model import CreditAccount, LedgerEntry
    from stationmaster.money import MicroDollars, Unit
    from stationmaster.station.local.station import LocalStation

app = typer.Typer(help="Prepaid credits of the users.", no_args_is_help=True, rich_markup_mode=None)

UserArgument = Annotated[str, typer.Argument(metavar="USER", help="A user; `me` is the single user of the settings.")]
SomeUser = Annotated[str | None, typer.Argument(metavar="[USER]", help="Only this user.", show_default=False)]
AmountArgument = Annotated[str, typer.Argument(metavar="AMOUNT", help="Dollars, or points where those are used.")]


def _some_words(value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise typer.BadParameter("it stands in the statement, and must say something")
    return value


ReasonOption = Annotated[str, typer.Option("--reason", help="Why; it stands in the statement.", callback=_some_words)]
KeyOption = Annotated[str | None, typer.Option("--id", help="A name for it; the same again changes nothing.")]

EXPORTED = (
    "seq", "at", "user", "kind", "balance_micros", "held_micros", "job", "attempt", "lot", "key", "note", "actor",
)  # fmt: skip
_KINDS = {"grant": "GRANT", "top-up": "TOP_UP", "reward": "REWARD"}


@app.command("show")
def show(context: typer.Context, user: SomeUser = None, as_json: JsonOption = False) -> None:
    """Show what users can spend, what is held for their jobs, and when credits expire.

    Examples:

      stationmaster credits show

      stationmaster credits show ann --json
    """
    with _opened(context) as (station, unit):
        names = [_known(station, user)] if user else station.store.ledger.users()
        accounts = [station.store.ledger.account(name) for name in names]
    if as_json or options_of(context).as_json:
        return print_json([account_json(account) for account in accounts])
    for account in accounts:
        typer.echo(f"{account.user:<20} {unit.show(account.balance)} to spend, {unit.show(account.held)} held")
        for lot in account.lots if user else ():
            until = "" if lot.expires_at is None else f", until {_day(lot.expires_at)}"
            typer.echo(f"  {unit.show(lot.remaining)} of {unit.show(lot.amount)} from {_day(lot.at)}{until}")
    if not accounts:
        typer.echo("nobody has credits yet; give some: stationmaster credits grant USER AMOUNT --reason …")
    return None


@app.command("grant")
def grant(
    context: typer.Context,
    user: UserArgument,
    amount: AmountArgument,
    reason: ReasonOption,
    kind: Annotated[str, typer.Option("--as", help="grant, top-up or reward.")] = "grant",
    expires: Annotated[str | None, typer.Option(help="How long they can be spent, as 30d; else for ever.")] = None,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give a user credits: a gift, a paid top-up, or a reward. Those that expire are spent first.

    Examples:

      stationmaster credits grant ann 25 --reason "welcome" --expires 30d

      stationmaster credits grant ann 50 --as top-up --reason "invoice 4711" --id invoice-4711
    """
    from stationmaster.model import EntryKind

    with _opened(context) as (station, unit):
        given = station.store.ledger.grant(
            _known(station, user),
            _amount(amount, unit),
            note=reason,
            kind=EntryKind(_one_of(kind)),
            expires_in=_seconds(expires),
            key=key,
            actor=_actor(),
        )
        _answer(context, station, unit, user, changed=given, as_json=as_json)


@app.command("adjust", context_settings={"ignore_unknown_options": True})
def adjust(
    context: typer.Context,
    user: UserArgument,
    amount: Annotated[str, typer.Argument(metavar="AMOUNT", help="What is added; a minus takes away.")],
    reason: ReasonOption,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put an account right, up or down; it never goes below zero.

    Examples:

      stationmaster credits adjust ann 1.50 --reason "machine was slow"

      stationmaster credits adjust ann -3 --reason "granted twice"
    """
    with _opened(context) as (station, unit):
        ledger = station.store.ledger
        changed = ledger.adjust(_known(station, user), _read(amount, unit), note=reason, key=key, actor=_actor())
        _answer(context, station, unit, user, changed=changed, as_json=as_json)


@app.command("refund")
def refund(
    context: typer.Context,
    job: JobArgument,
    reason: ReasonOption,
    amount: Annotated[str | None, typer.Argument(metavar="[AMOUNT]", help="By default all of it.")] = None,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give back what a job was charged, or a part of it; never more than that.

    Examples:

      stationmaster credits refund cats --reason "the samples were broken"

      stationmaster credits refund 4kd8 0.50 --reason "half of it"
    """
    from stationmaster.errors import NotFound

    with _opened(context) as (station, unit):
        try:
            job = station.jobs.find(job).id
        except NotFound:
            pass  # removed meanwhile: the ledger still knows its id
        wanted = None if amount is None else _amount(amount, unit)
        given = station.store.ledger.refund(job, wanted, note=reason, key=key, actor=_actor())
    if as_json or options_of(context).as_json:
        return print_json({"job": job, "refunded_micros": given})
    typer.echo(f"{unit.show(given)} given back for job {job}")
    return None


@app.command("statement")
def statement(context: typer.Context, user: UserArgument, as_json: JsonOption = False) -> None:
    """Show every movement of a user's credits, with the balance after each.

    Examples:

      stationmaster credits statement ann

      stationmaster credits statement ann --json
    """
    with _opened(context) as (station, unit):
        entries = list(station.store.ledger.entries(_known(station, user)))
    if as_json or options_of(context).as_json:
        return print_json([entry_json(entry) for entry in entries])
    typer.echo(f"{'DATE':<17} {'KIND':<11} {'CHANGE':>16} {'BALANCE':>16} {'HELD':>14}  WHAT")
    balance = held = 0
    for entry in entries:
        balance, held = balance + entry.balance, held + entry.held
        words = " ".join(filter(None, (_job_words(entry), entry.note)))
        amounts = f"{unit.show(entry.balance):>16} {unit.show(balance):>16} {unit.show(held):>14}"
        typer.echo(f"{_minute(entry.at):<17} {entry.kind.value:<11} {amounts}  {words}")
    return None


@app.command("export")
def export(context: typer.Context, user: SomeUser = None, as_json: JsonOption = False) -> None:
    """Print all entries, or one user's, as CSV; amounts are whole micro-dollars.

    Examples:

      stationmaster credits export > ledger.csv

      stationmaster credits export ann --json
    """
    with _opened(context) as (station, _):
        entries = station.store.ledger.entries(_known(station, user) if user else None)
        if as_json or options_of(context).as_json:
            return print_json([entry_json(entry) for entry in entries])
        writer = csv.DictWriter(sys.stdout, EXPORTED, lineterminator="\n")
        writer.writeheader()
        for entry in entries:
            writer.writerow(entry_json(entry))
    return None


@app.command("verify")
def verify(context: typer.Context, as_json: JsonOption = False) -> None:
    """Prove the whole ledger: every account, lot, hold and charge against the entries. Exit code 61 if it is broken.

    Examples:

      stationmaster credits verify

      stationmaster credits verify --json
    """
    from stationmaster.errors import LedgerBroken

    with _opened(context) as (station, unit):
        proof = station.store.ledger.prove()
    if as_json or options_of(context).as_json:
        print_json(
            {
                "sound": proof.holds,
                "entries": proof.entries,
                "accounts": proof.accounts,
                "balance_micros": proof.balance,
                "held_micros": proof.held,
                "problems": list(proof.problems),
            }
        )
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


def account_json(account: CreditAccount) -> dict[str, Any]:
    from stationmaster.cli.render import instant

    return {
        "user": account.user,
        "balance_micros": account.balance,
        "held_micros": account.held,
        "lots": [
            {
                "id": lot.id,
                "amount_micros": lot.amount,
                "remaining_micros": lot.remaining,
                "expires_at": instant(lot.expires_at),
                "at": instant(lot.at),
            }
            for lot in account.lots
        ],
    }


def entry_json(entry: LedgerEntry) -> dict[str, Any]:
    from stationmaster.cli.render import instant

    values = {
        "at": instant(entry.at),
        "kind": entry.kind.value,
        "balance_micros": entry.balance,
        "held_micros": entry.held,
    }
    return {name: values[name] if name in values else getattr(entry, name) for name in EXPORTED}


@contextmanager
def _opened(context: typer.Context) -> Iterator[tuple[LocalStation, Unit]]:
    """The station and what credits are counted in. Raises ConfigInvalid where there are none."""
    from stationmaster.control.policy import billing_of
    from stationmaster.errors import ConfigInvalid

    billing = billing_of(options_of(context).settings())
    if billing is None:
        raise ConfigInvalid("credits are switched off", hint="set billing.enabled, or STATIONMASTER_BILLING__ENABLED=1")
    with station_of(context, wake=False) as station:
        yield station, billing.unit


def _known(station: LocalStation, user: str) -> str:
    from stationmaster.errors import NotFound
    from stationmaster.model import SINGLE_USER

    if user != SINGLE_USER and station.store.users.find(user) is None and user not in station.store.ledger.users():
        raise NotFound(f"there is no user {user}", hint=f"add them: stationmaster users add {user}")
    return user


def _amount(text: str, unit: Unit) -> MicroDollars:
    from stationmaster.errors import UserError

    amount = _read(text, unit)
    if amount <= 0:
        raise UserError("the amount must be above zero", hint="to take credits away: stationmaster credits adjust")
    return amount


def _read(text: str, unit: Unit) -> MicroDollars:
    from stationmaster.errors import UserError

    try:
        return unit.read(text)
    except ValueError as problem:
        raise UserError(str(problem), hint="write it as 12.50, or as 125000 where points are used") from None


def _one_of(kind: str) -> str:
    from stationmaster.errors import UserError

    if kind not in _KINDS:
        raise UserError(f"{kind!r} is no way to give credits", hint=f"use one of: {', '.join(_KINDS)}")
    return _KINDS[kind]


def _seconds(text: str | None) -> float | None:
    from stationmaster.durations import parse_duration
    from stationmaster.errors import UserError

    if text is None:
        return None
    try:
        seconds = parse_duration(text)
    except ValueError as problem:
        raise UserError(f"expires: {problem}", hint="write it as 30d; leave it out for credits that stay") from None
    if seconds <= 0:
        raise UserError("expires: must be above zero", hint="write it as 30d; leave it out for credits that stay")
    return seconds


def _actor() -> str:
    """Who did it, as far as this computer knows."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "operator"


def _answer(
    context: typer.Context, station: LocalStation, unit: Unit, user: str, *, changed: bool, as_json: bool
) -> None:
    account = station.store.ledger.account(user)
    if as_json or options_of(context).as_json:
        return print_json({"changed": changed, **account_json(account)})
    said = "" if changed else "was done before; nothing was changed: "
    typer.echo(f"{said}{user} has {unit.show(account.balance)} to spend, {unit.show(account.held)} held")
    return None


def _job_words(entry: LedgerEntry) -> str:
    if entry.job is None:
        return ""
    return f"job {entry.job}" + ("" if entry.attempt is None else f", attempt {entry.attempt}")


def _minute(at: float) -> str:
    from stationmaster.cli.render import instant

    return str(instant(at))[:16].replace("T", " ")


def _day(at: float) -> str:
    return _minute(at)[:10]
