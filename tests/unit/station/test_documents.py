"""Documents of the API describe themselves."""

from __future__ import annotations

from typing import Generic, TypeVar

from stationmaster.station.wire.document import Document, RequestDocument

Item = TypeVar("Item")


class Box(Document, Generic[Item]):
    item: Item
    """What is in it."""
    size: int = 0


class SmallBox(Box[int]):
    lid: bool
    """Whether it is closed."""


class Order(RequestDocument):
    box: SmallBox
    """Which one
    is wanted."""


def test_the_text_below_a_field_describes_it_in_the_schema() -> None:
    schema = Order.model_json_schema()
    assert schema["properties"]["box"]["description"] == "Which one\nis wanted."
    fields = schema["$defs"]["SmallBox"]["properties"]
    assert {name: field.get("description") for name, field in fields.items()} == {
        "item": "What is in it.",
        "size": None,
        "lid": "Whether it is closed.",
    }


def test_a_document_of_one_kind_of_items_is_described_like_any() -> None:
    assert Box[str].model_json_schema()["properties"]["item"]["description"] == "What is in it."
