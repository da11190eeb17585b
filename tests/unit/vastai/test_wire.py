from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.errors import ProviderFault
from stationmaster.providers.vastai.wire import InstancePage, InstanceRow, OfferRow, VastUser, read, readable
from tests.support.vast.vast_client_bench import instance_row, offer_row

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(sorted(instance_row().keys() - {"id"}))


def test_an_instance_is_read_with_its_address_cleaned() -> None:
    row = read(InstanceRow, instance_row(), what="a machine")
    assert (row.id, row.public_ipaddr, row.gpu_name) == (7835610, "203.0.113.9", "RTX 4090")
    assert row.dph_total == 368300
    assert row.ports is not None
    bindings = row.ports["22/tcp"]
    assert bindings is not None
    assert bindings[0].port == 40000


@given(st.dictionaries(FIELDS, JSON))
def test_no_odd_field_hides_an_instance(odd: dict[str, object]) -> None:
    assert read(InstanceRow, instance_row(**odd), what="a machine").id == 7835610


@pytest.mark.parametrize("ports", [None, [22, 8080], {}, {"22/tcp": None}, {"22/tcp": []}, {"22/tcp": "40000"}])
def test_ports_that_say_nothing_are_no_fault(ports: object) -> None:
    row = read(InstanceRow, instance_row(ports=ports), what="a machine")
    assert not (row.ports or {}).get("22/tcp")


@pytest.mark.parametrize("document", [None, [], "x", {}, {"id": None}, {"id": "seven"}])
def test_an_instance_without_an_id_is_a_fault_of_the_provider(document: object) -> None:
    with pytest.raises(ProviderFault):
        read(InstanceRow, document, what="a machine")


@pytest.mark.parametrize("document", [{}, {"instances": None}, {"instances": {}}, {"instances": [3]}, [], None])
def test_a_list_of_another_shape_is_a_fault_and_never_empty(document: object) -> None:
    with pytest.raises(ProviderFault):
        read(InstancePage, document, what="a list")


def test_numbers_may_come_as_text() -> None:
    row = read(OfferRow, offer_row(dph_total="0.3719", num_gpus="1", reliability="0.99"), what="an offer")
    assert (row.dph_total, row.num_gpus, row.reliability) == (371900, 1, 0.99)


def test_an_offer_that_cannot_be_read_is_left_out_alone() -> None:
    assert [row.id for row in readable(OfferRow, [offer_row(id=1), {"id": 2}, None, offer_row(id=3)])] == [1, 3]


def test_what_an_account_says_of_keys_is_not_kept() -> None:
    user = read(VastUser, {"id": 7, "credit": 12.5, "api_key": "s3cret", "email": "a@b"}, what="an account")
    assert "s3cret" not in repr(user)
    assert user.credit == 12_500_000
