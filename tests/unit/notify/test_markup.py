"""What was typed is what arrives: in HTML, in Markdown and in plain text, however long it is."""

from __future__ import annotations

import html
import re

from hypothesis import given
from hypothesis import strategies as st

from stationmaster.notify.base import Message
from stationmaster.notify.markup import as_html, as_markdown, as_plain, clean, escape_html, escape_markdown, length

TEXTS = st.text(
    alphabet=st.one_of(
        st.sampled_from("<b>*_~`|[]()#>-+\\&;:/. \nhtps"), st.characters(exclude_categories=["Cs", "Cc"])
    )
)


def message(text: str, more: str | None = None) -> Message:
    return Message(key="k", kind="message", text=text, at=0.0, more=more)


def shown_by_markdown(text: str) -> str:
    return re.sub(r"\\([^\w\s])", r"\1", text.replace("\\_", "_"))


def test_a_name_full_of_markup_arrives_as_typed() -> None:
    assert escape_html("<b>*_") == "&lt;b&gt;*_"
    assert escape_markdown("<b>*_") == r"\<b>\*\_"


@given(TEXTS)
def test_html_shows_exactly_what_was_typed(text: str) -> None:
    escaped = escape_html(text)
    assert html.unescape(escaped) == text
    assert not set(escaped) & {"<", ">"}


@given(TEXTS.filter(lambda text: "://" not in text))
def test_markdown_shows_exactly_what_was_typed_and_nothing_is_markup(text: str) -> None:
    escaped = escape_markdown(text)
    assert shown_by_markdown(escaped) == text
    assert not re.search(r"(?<!\\)(?:\\\\)*(?<!\\)[*_~`|\[<]", escaped)


def test_a_link_stays_whole() -> None:
    link = "https://sm.example/jobs/a_b*c"
    assert escape_markdown(f"see *this* {link}") == rf"see \*this\* {link}"


@given(TEXTS, st.integers(60, 400))
def test_no_message_is_longer_than_its_service_takes(text: str, limit: int) -> None:
    long = message(text * 20, more="More: stationmaster show job_1")
    assert length(as_markdown(long, limit=limit)) <= limit
    assert length(html.unescape(as_html(long, limit=limit))) <= limit


def test_a_message_that_is_cut_says_where_the_rest_is() -> None:
    cut = as_plain(message("a" * 5000, more="More: stationmaster show x"), limit=4096)
    assert cut.endswith("…\nMore: stationmaster show x")
    assert length(cut) == 4096


def test_emoji_count_as_messengers_count_them() -> None:
    assert (length("🛑"), length("⚠️"), length("é")) == (2, 2, 1)
    assert length(as_plain(message("🛑" * 60), limit=50)) <= 50


@given(st.text(alphabet=st.characters()))
def test_cleaned_text_can_be_sent_and_stored(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode()
    assert "\0" not in cleaned
    assert clean(cleaned) == cleaned
