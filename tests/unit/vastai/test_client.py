"""The client against answers written down here: what it sends, what it repeats, what it believes."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from stationmaster.errors import (
    AccessRefused,
    AnswerLost,
    ConfigInvalid,
    NoCapacity,
    ProviderBusy,
    ProviderError,
    ProviderFault,
)
from stationmaster.model import Offer, Requirements
from stationmaster.money import from_dollars
from stationmaster.providers.vastai.calls import INTERVALS, Calls
from stationmaster.providers.vastai.client import SEARCH_CAP, RentOrder
from stationmaster.providers.vastai.retries import Retries
from tests.support.asynchronous_tests import asynchronous
from tests.support.vast.vast_client_bench import SECRET, Turns, instance_row, offer_row, refused, said, scripted
from tests.support.vast.vast_wishes import vast_settings

ORDER = RentOrder(image="pytorch/pytorch:2.4", disk_gb=64.0, label="sm-abcd1234-job-1", onstart="echo hi")
LOST = httpx.ReadTimeout("no answer in time")
UNSENT = httpx.ConnectError("connection refused")


def page(rows: list[dict[str, Any]], *, total: int | None = None, token: str | None = None) -> httpx.Response:
    document = {"success": True, "instances": rows, "total_instances": total, "next_token": token}
    return said(document)


@asynchronous
async def test_the_key_goes_in_one_header_and_nowhere_else() -> None:
    script = scripted(page([], total=0))
    await script.client().instances()
    request = script.asked[0]
    assert request.headers["Authorization"] == f"Bearer {SECRET}"
    assert SECRET not in str(request.url)
    assert SECRET.encode() not in request.content


@asynchronous
async def test_an_order_says_everything_that_matters() -> None:
    script = scripted(said({"success": True, "new_contract": 7, "instance_api_key": "x" * 40}))
    created = await script.client().create(111, ORDER)
    assert (created.instance_id, created.fault) == (7, None)
    assert (script.asked[0].method, script.asked[0].url.path) == ("PUT", "/api/v0/asks/111/")
    assert script.body() == {
        "client_id": "me",
        "image": "pytorch/pytorch:2.4",
        "disk": 64.0,
        "label": "sm-abcd1234-job-1",
        "onstart": "echo hi",
        "env": {},
        "price": None,
        "runtype": "ssh_direc ssh_proxy",
        "cancel_unavail": True,
    }


@asynchronous
async def test_a_bid_always_carries_its_price() -> None:
    script = scripted(said({"success": True, "new_contract": 7}))
    order = RentOrder(image="i", disk_gb=8.0, label="l", onstart="", bid_per_hour=from_dollars("0.231"))
    await script.client().create(111, order)
    assert script.body()["price"] == 0.231


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (LOST, AnswerLost),
        (httpx.RemoteProtocolError("server disconnected"), AnswerLost),
        (httpx.WriteError("broken pipe"), AnswerLost),
        (UNSENT, ProviderBusy),
        (httpx.ConnectTimeout("no route"), ProviderBusy),
        (httpx.Response(500, text="oops"), AnswerLost),
        (httpx.Response(502, text="bad gateway"), AnswerLost),
        (httpx.Response(504, text="gateway timeout"), AnswerLost),
        (httpx.Response(408, text="timeout"), AnswerLost),
        (httpx.Response(302, text=""), AnswerLost),
        (httpx.Response(200, text="<html>"), AnswerLost),
        (said({"success": True}), AnswerLost),
        (said({"success": True, "new_contract": None}), AnswerLost),
        (httpx.Response(429, text="API requests too frequent"), ProviderBusy),
        (refused(410, "no_such_ask", "taken"), NoCapacity),
        (said({"success": False, "error": "no_such_ask"}), NoCapacity),
        (refused(401, "auth_error", "Invalid user key"), AccessRefused),
        (refused(400, "insufficient_credit", "lacks credit"), AccessRefused),
        (refused(400, "invalid_args", "image is required"), ProviderError),
    ],
)
@asynchronous
async def test_a_create_is_sent_once_and_its_answer_told_apart(
    answer: httpx.Response | Exception, kind: type[ProviderError]
) -> None:
    script = scripted(answer)
    with pytest.raises(ProviderError) as problem:
        await script.client().create(111, ORDER)
    assert type(problem.value) is kind
    assert len(script.asked) == 1
    assert SECRET not in str(problem.value)


@pytest.mark.parametrize("status", [200, 400, 402, 500])
@asynchronous
async def test_an_error_with_a_contract_is_a_rental_with_a_fault(status: int) -> None:
    script = scripted(refused(status, "invalid_price", "bid is below the minimum", new_contract=99))
    created = await script.client().create(111, ORDER)
    assert (created.instance_id, created.fault) == (99, "bid is below the minimum")


@asynchronous
async def test_every_page_of_the_list_is_followed() -> None:
    script = scripted(
        page([instance_row(id=1), instance_row(id=2)], total=3, token="next"), page([instance_row(id=3)], total=3)
    )
    found = await script.client().instances()
    assert ([row.id for row in found.rows], found.complete) == ([1, 2, 3], True)
    assert script.asked[0].url.path == "/api/v1/instances/"
    assert script.asked[1].url.params["after_token"] == "next"


@pytest.mark.parametrize(
    "pages",
    [
        [page([instance_row(id=1)], total=2)],
        [page([], total=1)],
        [page([instance_row(id=1)], total=None)],
        [page([instance_row(id=1)], total=1, token="a"), page([], total=0)],
        [page([instance_row(id=1)], total=2, token="a"), page([instance_row(id=1)], total=2)],
        [page([instance_row(id=1)], total=1, token="a"), page([], total=1, token="a")],
    ],
)
@asynchronous
async def test_a_list_whose_count_disagrees_is_not_complete(pages: list[httpx.Response]) -> None:
    assert not (await scripted(*pages).client().instances()).complete


@pytest.mark.parametrize(
    "answer",
    [
        refused(410, "deprecated_endpoint", "Use /api/v1/instances/ instead."),
        refused(200, "deprecated_endpoint", "Use /api/v1/instances/ instead."),
        said({"success": True}),
        said({"success": True, "instances": None, "total_instances": 0}),
        said({"instances": [{"label": "no id"}], "total_instances": 1}),
        said([]),
        httpx.Response(200, text="<html>maintenance</html>"),
    ],
)
@asynchronous
async def test_a_list_that_is_none_is_a_fault(answer: httpx.Response) -> None:
    with pytest.raises(ProviderFault):
        await scripted(answer).client().instances()


@asynchronous
async def test_one_instance_comes_under_a_plural_key() -> None:
    script = scripted(said({"instances": instance_row(id=5)}))
    row = await script.client().instance(5)
    assert row is not None
    assert row.id == 5
    assert script.asked[0].url.params["owner"] == "me"


@pytest.mark.parametrize("answer", [said({"instances": None}), refused(404, "no_such_instance", "not found")])
@asynchronous
async def test_gone_is_said_in_two_ways(answer: httpx.Response) -> None:
    assert await scripted(answer).client().instance(5) is None


@pytest.mark.parametrize(
    "answer",
    [
        said({"success": True}),
        said({"instances": []}),
        said({"instances": {}}),
        said({"instances": instance_row(id=6)}),
        refused(410, "deprecated_endpoint", "gone"),
    ],
)
@asynchronous
async def test_any_other_answer_about_one_instance_is_a_fault(answer: httpx.Response) -> None:
    with pytest.raises(ProviderFault):
        await scripted(answer).client().instance(5)


@asynchronous
async def test_a_404_that_speaks_of_the_key_is_not_gone() -> None:
    with pytest.raises(AccessRefused):
        await scripted(refused(404, "auth_error", "Invalid user key")).client().instance(5)


@pytest.mark.parametrize("answer", [said({"success": True}), refused(404, "no_such_instance", "not found")])
@asynchronous
async def test_destroying_what_is_gone_is_quiet(answer: httpx.Response) -> None:
    script = scripted(answer)
    await script.client().destroy(5)
    assert (script.asked[0].method, script.body()) == ("DELETE", {})


@asynchronous
async def test_a_destroy_that_fails_says_so() -> None:
    with pytest.raises(ProviderError):
        await scripted(refused(200, "invalid_args", "cannot be destroyed")).client().destroy(5)


@asynchronous
async def test_reads_and_destroys_are_repeated_with_growing_waits() -> None:
    script = scripted(LOST, httpx.Response(503, text="busy"), UNSENT, said({"success": True}))
    await script.client(retries=Retries(attempts=4, first_seconds=0.5)).destroy(5)
    assert len(script.asked) == 4
    assert script.slept == [0.5, 1.0, 2.0]


@asynchronous
async def test_repeats_end() -> None:
    script = scripted(*[httpx.Response(503, text="busy")] * 9)
    with pytest.raises(ProviderBusy):
        await script.client(retries=Retries(attempts=3)).instances()
    assert len(script.asked) == 3


@asynchronous
async def test_an_unreachable_service_is_named_with_what_to_do() -> None:
    script = scripted(*[UNSENT] * 9)
    with pytest.raises(ProviderBusy, match=r"cannot be reached \(connection refused\)") as problem:
        await script.client().user()
    assert problem.value.hint
    assert "VASTAI_API_BASE_URL" in problem.value.hint


@pytest.mark.parametrize("call", ["start", "add_account_key", "attach_key"])
@asynchronous
async def test_what_may_do_harm_twice_is_sent_once(call: str) -> None:
    arguments: dict[str, tuple[Any, ...]] = {
        "start": (5,),
        "add_account_key": ("ssh-ed25519 AAAA",),
        "attach_key": (5, "ssh-ed25519 AAAA"),
    }
    script = scripted(LOST)
    with pytest.raises(AnswerLost):
        await getattr(script.client(), call)(*arguments[call])
    assert len(script.asked) == 1


@pytest.mark.parametrize("status", [200, 400, 409])
@asynchronous
async def test_a_queued_start_is_no_start_whatever_its_status(status: int) -> None:
    document = {"success": False, "msg": "Required resources are currently unavailable, state change queued."}
    assert await scripted(said(document, status)).client().start(5) is False


@asynchronous
async def test_stop_and_start_say_what_is_wanted() -> None:
    script = scripted(said({"success": True}), said({"success": True}))
    client = script.client()
    await client.stop(5)
    assert script.body() == {"state": "stopped"}
    assert await client.start(5) is True
    assert script.body() == {"state": "running"}


@asynchronous
async def test_a_search_goes_on_above_the_price_where_the_cap_cut_it_off() -> None:
    cheap = [offer_row(id=index, dph_total=0.1 + index / 1000) for index in range(1, SEARCH_CAP + 1)]
    dear = [offer_row(id=SEARCH_CAP, dph_total=0.164), offer_row(id=900, dph_total=0.5)]
    script = scripted(said({"offers": cheap}), said({"offers": dear}))
    found = await script.client().search({"num_gpus": {"eq": 1}}, pages=5)
    assert len(found.rows) == SEARCH_CAP + 1
    assert "dph_total" not in script.body(0)
    assert script.body(1)["dph_total"]["gte"] <= 0.164
    assert script.body(1)["num_gpus"] == {"eq": 1}


@asynchronous
async def test_a_search_ends_at_the_price_that_nobody_would_pay_and_at_equal_prices() -> None:
    same = [offer_row(id=index, dph_total=0.3) for index in range(1, SEARCH_CAP + 1)]
    script = scripted(said({"offers": same}), said({"offers": same}))
    assert len((await script.client().search({}, pages=5)).rows) == SEARCH_CAP
    assert len(script.asked) == 2
    script = scripted(said({"offers": same}))
    await script.client().search({}, pages=5, until_price=from_dollars("0.2"))
    assert len(script.asked) == 1


@asynchronous
async def test_only_pages_that_are_read_take_a_turn_and_the_later_ones_do_not_wait() -> None:
    many = [offer_row(id=index, dph_total=0.1 + index / 1000) for index in range(1, SEARCH_CAP + 1)]
    script = scripted(said({"offers": many}), said({"offers": []}))
    await script.client().search({}, pages=3)
    assert script.turns.taken == script.turns.continued == [("default", "search", INTERVALS["search"])]


@asynchronous
async def test_every_call_waits_for_its_turn_at_the_interval_that_was_set() -> None:
    script = scripted(page([], total=0), said({"success": True}))
    client = script.client(intervals={"list": 0.25})
    await client.instances()
    await client.destroy(5)
    assert script.turns.taken == [("default", "list", 0.25), ("default", "destroy", 3.0)]


@asynchronous
async def test_a_log_is_fetched_without_the_key_once_it_is_there() -> None:
    script = scripted(
        said({"success": True, "result_url": "https://s3.test/instance_logs/abc.log"}),
        httpx.Response(403, text="AccessDenied"),
        httpx.Response(200, text="hello\n"),
    )
    assert await script.client().log(5, tail=50, attempts=3, interval_seconds=0.3) == "hello\n"
    assert script.body(0) == {"tail": "50"}
    assert "Authorization" not in script.asked[1].headers
    assert script.slept == [0.3]


@asynchronous
async def test_a_log_that_never_comes_is_no_empty_log() -> None:
    script = scripted(said({"result_url": "http://vast.test/a.log"}), *[httpx.Response(403)] * 3)
    with pytest.raises(ProviderBusy):
        await script.client().log(5, attempts=3)


@pytest.mark.parametrize("url", ["http://169.254.169.254/latest", "file:///etc/passwd", "ftp://x/y"])
@asynchronous
async def test_a_log_is_read_only_from_a_safe_address(url: str) -> None:
    with pytest.raises(ProviderFault):
        await scripted(said({"result_url": url})).client().log(5)


@asynchronous
async def test_an_account_without_keys_answers_404() -> None:
    assert await scripted(refused(404, "no_ssh_keys", "No SSH keys found.")).client().account_keys() == ()
    with pytest.raises(AccessRefused):
        await scripted(refused(404, "auth_error", "Invalid user key")).client().account_keys()


@asynchronous
async def test_a_key_that_is_there_already_is_no_failure() -> None:
    await scripted(refused(400, "invalid_args", "Key already exists.")).client().attach_key(5, "ssh-ed25519 AAAA")


@asynchronous
async def test_charges_come_whole_or_not_at_all() -> None:
    row = {"start": 1.0, "end": 2.0, "type": "instance", "source": "instance-7", "amount": 0.5, "items": []}
    script = scripted(
        said({"success": True, "total": 2, "next_token": "t", "results": [row]}),
        said({"success": True, "total": 2, "next_token": None, "results": [row]}),
    )
    assert len(await script.client().charges(since=0.0, until=100.0)) == 2
    assert json.loads(script.asked[0].url.params["select_filters"])["day"] == {"gte": 0, "lte": 101}
    short = scripted(said({"success": True, "total": 2, "next_token": None, "results": [row]}))
    with pytest.raises(ProviderFault):
        await short.client().charges(since=0.0, until=100.0)


@pytest.mark.parametrize("url", ["console.vast.ai", "ftp://x", "https://user:key@vast.ai", "https://vast.ai?api_key=k"])
def test_an_address_that_cannot_work_is_refused_with_a_hint(url: str) -> None:
    with pytest.raises(ConfigInvalid) as problem:
        Calls(base_url=url, api_key=SECRET, account="default", limiter=Turns())
    assert problem.value.hint


@pytest.mark.parametrize("job_root", ["/opt/stationmaster/jobs", "/opt/stationthis/jobs"])
@asynchronous
async def test_a_machine_is_told_where_jobs_lie_if_it_is_not_the_usual_place(job_root: str) -> None:
    script = scripted(said({"success": True, "new_contract": 5}), said({"instances": instance_row(id=5)}))
    provider = script.provider(settings=vast_settings(job_root=job_root))
    offer = Offer(id="77", provider="vastai", price_per_hour=from_dollars("0.40"))
    await provider.create(offer, label="sm-abcd1234-job-1", want=Requirements(gpus=1))
    told = script.body()["env"].get("STATIONMASTER_JOB_ROOT")
    assert told == (None if job_root == "/opt/stationmaster/jobs" else job_root)
    machine = await provider.describe("5")
    assert machine is not None
    assert {access.job_root for access in machine.accesses} == {job_root}
