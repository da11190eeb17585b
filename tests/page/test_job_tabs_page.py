"""The log, the events and the checkpoints of a training, with text that a hostile machine may have written."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from stationmaster.model import LogChunk, State
from stationmaster.store import logs
from tests.support.browser.looks import TAB_PANEL, problems_in_light_and_narrow
from tests.support.browser.visitor import Visitor
from tests.support.jobs.peopled_world import ANNS_JOB, PeopledWorld
from tests.support.jobs.spine_values import spec
from tests.support.jobs.stored_jobs import change_row, put_trained

LARGE = "tablarge"
GROWING = "tabgrows"
COLOURED = "tabcolour"

_HOSTILE = (
    '<img src=x onerror="window.wasRun = true"><script>window.wasRun = true</script>\n'
    "\x1b[31mred\x1b[0m \x1b]0;title\x07\x1b[2Jafter\n"
    "gpj.\u202etxt\n"
    f"{'long' * 500_000}\n"
    "RuntimeError: CUDA out of memory\n"
)
_LINES = 100_000


def write_log(world: PeopledWorld, job_id: str, *, start: int, text: str) -> int:
    """Appends to the log as a worker does, and returns where it ends."""
    data = text.encode()
    chunks = [
        LogChunk(attempt=1, stream="0.1", start=start + at, end=start + at + len(part), data=part)
        for at in range(0, len(data), 1 << 18)
        if (part := data[at : at + (1 << 18)])
    ]
    made = logs.rows(job_id, chunks, log_bytes=start + len(data), cap_bytes=1 << 30, now=world.store.now())
    with world.store.database.write() as connection:
        logs.append(connection, made)
    return start + len(data)


@pytest.fixture(scope="module")
def logged(world: PeopledWorld) -> Iterator[PeopledWorld]:
    """Beside the world's own training: one with a large and hostile log, one with a coloured log, one that runs."""
    store = world.store
    put_trained(store, LARGE, name="large log")
    lines = "".join(f"step {number}/{_LINES}\n" for number in range(1, _LINES + 1))
    write_log(world, LARGE, start=0, text=_HOSTILE + lines + "UserWarning: the end\n")
    put_trained(store, COLOURED, name="coloured log")
    tones = "".join(f"\x1b[{code}mtone {code}\x1b[0m " for code in (1, 2, 31, 32, 33, 34))
    write_log(world, COLOURED, start=0, text=f"{tones}\n{tones} error: one\n{tones} UserWarning: two\n")
    store.jobs.submit(spec(GROWING, name="growing log"))
    change_row(store, GROWING, state=State.EXECUTING.value, attempt=1)
    yield world
    change_row(store, GROWING, state=State.ENDED.value, outcome="CANCELLED")
    for job in (LARGE, GROWING, COLOURED):
        world.local.jobs.remove(job)


def log_of(page: Page) -> Locator:
    return page.get_by_role("log", name="Lines of the log")


def line(page: Page, number: int) -> Locator:
    return log_of(page).locator(f'[data-line="{number}"]')


def test_a_large_and_hostile_log_is_only_text_and_is_saved_as_it_was_written(
    logged: PeopledWorld, resident: Visitor
) -> None:
    page = resident.page
    resident.go(f"/jobs/{LARGE}?tab=log&line=1")
    expect(page.get_by_text("100,006 lines")).to_be_visible()
    expect(line(page, 1)).to_contain_text("<script>window.wasRun = true</script>")
    expect(line(page, 2).locator("code")).to_have_text("red after")
    expect(line(page, 3)).to_contain_text("gpj.⟨U+202E⟩txt")
    assert page.evaluate("window.wasRun") is None
    assert log_of(page).locator("[data-line]").count() < 150
    line(page, 4).get_by_role("button", name="show all (2.0 MB)").click()
    whole = page.get_by_role("dialog", name="Line 4: 2,000,000 characters")
    expect(whole.get_by_label("The whole line")).to_contain_text("longlong")
    whole.get_by_role("button", name="Close", exact=True).last.click()
    expect(whole).to_have_count(0)
    with page.expect_download() as started:
        page.get_by_role("button", name="Download", exact=True).click()
    saved = started.value.path().read_bytes().decode()
    assert started.value.suggested_filename == f"large-log-{LARGE}.log"
    assert _HOSTILE in saved
    assert saved.endswith(f"step {_LINES}/{_LINES}\nUserWarning: the end\n")


def test_search_counts_and_jumps_and_errors_are_found(logged: PeopledWorld, resident: Visitor) -> None:
    page = resident.page
    resident.go(f"/jobs/{LARGE}?tab=log")
    expect(line(page, _LINES + 6)).to_be_visible()
    search = page.get_by_role("searchbox", name="Search the log")
    search.fill("STEP 7777")
    expect(page.get_by_text("11 lines", exact=True)).to_be_visible()
    search.press("Enter")
    expect(line(page, 7777 + 5)).to_be_visible()
    expect(line(page, 7777 + 5).locator("mark")).to_have_text("step 7777")
    expect(page.get_by_text("1 of 11 lines")).to_be_visible()
    search.press("Shift+Enter")
    expect(line(page, 77779 + 5)).to_be_visible()
    expect(page).to_have_url(re.compile(f"line={77779 + 5}"))
    page.get_by_role("button", name="Errors (1)").click()
    expect(line(page, 5)).to_contain_text("RuntimeError: CUDA out of memory")
    page.get_by_role("button", name="Warnings (1)").click()
    expect(line(page, _LINES + 6)).to_be_visible()


def test_the_log_follows_a_running_training(logged: PeopledWorld, resident: Visitor) -> None:
    page = resident.page
    resident.go(f"/jobs/{GROWING}?tab=log")
    expect(page.get_by_text("No log yet")).to_be_visible()
    end = write_log(logged, GROWING, start=0, text="".join(f"line {number}\n" for number in range(1, 501)))
    log_of(page).evaluate("list => list.scrollIntoView({ block: 'center' })")
    expect(line(page, 500)).to_be_in_viewport()
    log_of(page).evaluate("list => { list.scrollTop = 0; }")
    expect(page.get_by_role("button", name="Follow")).to_be_visible()
    end = write_log(logged, GROWING, start=end, text="10%|#\r90%|#########\r100%|##########\n")
    expect(page.get_by_role("button", name="Follow (1 new line)")).to_be_visible()
    page.get_by_role("button", name="Follow").click()
    expect(line(page, 501)).to_be_in_viewport()
    expect(line(page, 501)).to_contain_text("100%|##########")
    write_log(logged, GROWING, start=end, text="the last\n")
    expect(line(page, 502)).to_be_in_viewport()


def test_events_are_sentences_for_everybody(resident: Visitor) -> None:
    page = resident.page
    resident.go(f"/jobs/{ANNS_JOB}?tab=events")
    panel = page.get_by_role("tabpanel")
    expect(panel.get_by_role("listitem").first).to_contain_text("Now ENDED.")
    expect(panel.get_by_role("listitem").filter(has_text="The job ended as COMPLETED.")).to_contain_text("Success")
    assert problems_in_light_and_narrow(resident, within=TAB_PANEL) == []
    panel.get_by_label("Order").select_option("oldest first")
    expect(panel.get_by_role("listitem").first).not_to_contain_text("Now ENDED.")
    panel.get_by_label("About").select_option("files")
    expect(panel.get_by_role("listitem").filter(has_text="Saved the model")).to_have_count(1)
    expect(panel.get_by_role("listitem").filter(has_text="Now ")).to_have_count(0)
    expect(page).to_have_url(re.compile("about=files"))


def test_checkpoints_say_to_everybody_where_they_lie_and_come_down(resident: Visitor) -> None:
    page = resident.page
    resident.go(f"/jobs/{ANNS_JOB}?tab=checkpoints")
    best = page.get_by_role("region", name="Checkpoints").get_by_role("row").filter(has_text="★ best")
    expect(best).to_contain_text("home ✓ verified")
    expect(best.get_by_role("button", name="Copy the SHA-256")).to_be_visible()
    expect(best.get_by_role("link", name="Resume from here")).to_be_visible()
    assert problems_in_light_and_narrow(resident, within=TAB_PANEL) == []
    with page.expect_download() as started:
        best.get_by_role("link", name="Download").click()
    assert started.value.suggested_filename.endswith(".safetensors")
    assert started.value.path().stat().st_size > 1000


def test_everybody_can_read_a_log_with_its_colours(logged: PeopledWorld, resident: Visitor) -> None:
    resident.go(f"/jobs/{COLOURED}?tab=log&line=1")
    expect(resident.page.get_by_text("error: one").first).to_be_visible()
    assert problems_in_light_and_narrow(resident, within=TAB_PANEL) == []
