"""The inbox and the bell: what was sent to somebody, and what of it is unread."""

from __future__ import annotations

from playwright.sync_api import expect

from stationmaster.model import Note
from tests.support.browser.looks import problems_in_light_and_narrow
from tests.support.browser.visits import Visits
from tests.support.jobs.peopled_world import PeopledWorld


def test_messages_are_marked_as_read_and_that_can_be_undone(visits: Visits, world: PeopledWorld) -> None:
    world.local.notifications.mark_read("bob", up_to=2**60)  # other tests may have sent him something
    for text in ("the first", "the second"):
        world.store.inbox.put("bob", Note(key=text, kind="message", text=text, priority="normal", at=1.0))
    with visits.of("bob") as visitor:
        page = visitor.page
        visitor.open("/")
        page.get_by_role("button", name="Inbox, 2 unread messages").click()
        news = page.get_by_role("dialog", name="Newest messages")
        expect(news.get_by_role("listitem").first).to_contain_text("the second")
        news.get_by_role("link", name="All messages").click()
        messages = page.get_by_role("list", name="Messages").get_by_role("listitem")
        expect(messages.first).to_contain_text("Unread:")
        page.get_by_role("button", name="Mark all as read").click()
        expect(messages.first).not_to_contain_text("Unread:")
        expect(page.get_by_role("button", name="Inbox, nothing unread")).to_be_visible()
        page.get_by_role("button", name="Undo").click()
        expect(messages.first).to_contain_text("Unread:")
        assert world.local.notifications.count_unread("bob") == 2, "the server has not heard of it"
        older = messages.filter(has_text="the first")
        older.get_by_role("button", name="Mark as read up to here").click()
        expect(older).not_to_contain_text("Unread:")
        expect(messages.first).to_contain_text("Unread:")
        with page.expect_response("**/inbox/read") as sent:
            page.keyboard.press("e")
        assert sent.value.status == 204
        assert world.local.notifications.count_unread("bob") == 0
        page.reload()
        expect(page.get_by_role("button", name="Inbox, nothing unread")).to_be_visible()
        page.get_by_label("Unread only").check()
        expect(page.get_by_role("heading", name="You have read everything")).to_be_visible()


def test_a_message_leads_to_its_training(visits: Visits, world: PeopledWorld) -> None:
    text = "Training completed\nJob: anns cats"
    note = Note(key="done", kind="completed", text=text, priority="normal", at=1.0, job_id="annsjob")
    world.store.inbox.put("ann", note)
    with visits.of("ann") as visitor:
        visitor.open("/inbox")
        training = visitor.page.get_by_role("link", name="Open the training").first
        expect(training).to_be_visible()
        assert problems_in_light_and_narrow(visitor) == []
        visitor.page.get_by_role("button", name="Inbox,").click()
        expect(visitor.page.get_by_role("dialog", name="Newest messages")).to_be_visible()
        assert visitor.accessibility_problems() == []
        visitor.page.keyboard.press("Escape")
        training.click()
        visitor.page.wait_for_url("**/jobs/annsjob")


def test_an_empty_inbox_says_what_will_be_there(visits: Visits) -> None:
    with visits.of("viewer") as vera:
        vera.open("/inbox")
        expect(vera.page.get_by_role("heading", name="No messages yet")).to_be_visible()
