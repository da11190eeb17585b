"""Offers as a numbered table, and the question which of them to rent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import typer

from stationmaster.cli.person import Person, ask_until_valid, yes_or_no
from stationmaster.cli.table import Cell, Column
from stationmaster.durations import format_duration
from stationmaster.errors import UserError
from stationmaster.model import Offer
from stationmaster.money import MicroDollars, format_dollars
from stationmaster.station.proposals import OfferTerms, Terms

COLUMNS = (
    Column("#", right=True),
    Column("GPU", shrinks_to=12),
    Column("$/H", right=True),
    Column("TIME", right=True),
    Column("TOTAL", right=True),
    Column("REGION", leaves=2, shrinks_to=8),
    Column("RELIABLE", right=True, leaves=3),
    Column("OFFER", leaves=1, names_row=True),
    Column("", leaves=4),
)
"""The same for `offers` and for the question of `train` and `retry`."""


def offer_row(number: int, offer: Offer, *, hours: float, total: MicroDollars, remark: str = "") -> list[str | Cell]:
    """`remark` says what is special about the offer; offers have remarks of their own, too."""
    return [
        str(number),
        gpu_text(offer),
        format_dollars(offer.price_per_hour, 3),
        format_duration(hours * 3600),
        format_dollars(total),
        offer.region or "",
        "" if offer.reliability is None else f"{offer.reliability * 100:.1f} %",
        offer.id,
        Cell(", ".join(filter(None, (remark, offer.note))), "green" if remark else ""),
    ]


def gpu_text(offer: Offer) -> str:
    return f"{offer.gpus}x {offer.gpu}" if offer.gpus > 1 else (offer.gpu or "none")


def choose_offer(terms: Terms, person: Person, *, asked: str | None) -> str:
    """Show the offers and return the id of the one that the person confirms. Raises typer.Exit if they decline.

    `asked` is the offer that they named themselves. One that costs more than the one that the question was about, or
    that has other notes, is asked about again with its own figures: a yes is only to what was shown.
    """
    offers = terms.offers
    rows = [
        offer_row(
            number,
            one.offer,
            hours=one.quote.hours_expected,
            total=one.quote.cost_expected,
            remark=_remark(one, terms, asked),
        )
        for number, one in enumerate(offers, 1)
    ]
    person.tell("")
    person.show_table(COLUMNS, rows)
    about = next((one for one in offers if one.offer.id == terms.quote.offer), offers[0])
    while True:
        chosen = _ask(person, offers, about)
        if chosen is about:
            return chosen.offer.id
        news = [note for note in chosen.notes if note not in about.notes]
        for note in news:
            person.tell(f"  note   {note}")
        if not news and not _costs_more(chosen, about):
            person.tell(f"number {offers.index(chosen) + 1}: {', '.join(_figures(chosen))}")
            return chosen.offer.id
        about = chosen


def _remark(one: OfferTerms, terms: Terms, asked: str | None) -> str:
    if one.offer.id == asked:
        return "as asked"
    return "recommended" if one is terms.offers[0] else ""


def _ask(person: Person, offers: Sequence[OfferTerms], about: OfferTerms) -> OfferTerms:
    """The offer that is confirmed or picked. Raises typer.Exit if the person declines."""
    is_first = about is offers[0]
    number = offers.index(about) + 1
    others = "" if len(offers) == 1 else "/number"
    figures = f"about {format_dollars(about.quote.cost_expected)}" if is_first else ", ".join(_figures(about))
    question = f"Rent number {number} ({gpu_text(about.offer)}) for {figures}? [y/n{others}] "

    def read(answer: str) -> OfferTerms:
        # Enter alone rents nothing: one too many after the questions before would spend money.
        given = yes_or_no(answer, default=True) if answer else None
        if given is not None:
            if not given:
                person.tell("aborted; nothing was changed")
                raise typer.Exit(0)
            return about
        if not answer.isdecimal():
            raise UserError("answer y, n" + (" or a number of the table" if others else ""))
        if not 1 <= int(answer[:9]) <= len(offers):
            raise UserError(f"there is no offer number {answer}", hint=f"1 to {len(offers)}")
        return offers[int(answer) - 1]

    return ask_until_valid(person, question, read, option="--offer and --yes")


def _figures(one: OfferTerms) -> Iterator[str]:
    yield f"about {format_dollars(one.quote.cost_expected)} in {format_duration(one.quote.hours_expected * 3600)}"
    yield f"at most {format_dollars(one.max_price_per_hour, 3)}/h and {format_dollars(one.max_spend)} in all"


def _costs_more(one: OfferTerms, than: OfferTerms) -> bool:
    """In the whole, by the hour, or at its limits."""
    return (
        one.quote.cost_expected > than.quote.cost_expected
        or one.quote.price_per_hour > than.quote.price_per_hour
        or one.max_price_per_hour > than.max_price_per_hour
        or one.max_spend > than.max_spend
    )
