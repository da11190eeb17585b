"""From settings to the ways that lead to people: the one place where channels are chosen."""

from __future__ import annotations

from dataclasses import dataclass

import httpx

from stationmaster.control.messages.address_book import AddressBook
from stationmaster.control.messages.courier import Courier
from stationmaster.control.messages.notices import Notices, note_of
from stationmaster.control.messages.notifier import Notifier
from stationmaster.notify.apprise import Apprise
from stationmaster.notify.base import Channel, Rendered
from stationmaster.notify.discord import Discord
from stationmaster.notify.email import Email, MailServer
from stationmaster.notify.inbox import Inbox
from stationmaster.notify.slack import Slack
from stationmaster.notify.telegram import Telegram
from stationmaster.notify.webhook import Webhook
from stationmaster.settings import NotifySettings, Settings
from stationmaster.store.inbox import InboxNotes
from stationmaster.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """Everything that messages need, opened together; `close` when done."""

    client: httpx.AsyncClient
    book: AddressBook
    courier: Courier
    notifier: Notifier

    async def close(self) -> None:
        await self.client.aclose()


def open_post(settings: Settings, store: Store) -> Post:
    """Inside of a running event loop. Raises ConfigInvalid."""
    client = httpx.AsyncClient(timeout=settings.notify.timeout)
    channels = _channels(settings.notify, client, store)
    book = AddressBook(settings.notify, store.users, channels)
    courier = Courier(channels)
    notices = Notices(store, book, page_url=settings.notify.page_url)
    return Post(
        client=client,
        book=book,
        courier=courier,
        notifier=Notifier(
            store,
            book,
            courier,
            notices,
            look_seconds=settings.notify.look,
            lease_seconds=60.0 + 12 * settings.notify.timeout,  # six requests at most, twice over
        ),
    )


def _channels(settings: NotifySettings, client: httpx.AsyncClient, store: Store) -> dict[str, Channel]:
    """Every way that is set up, by name."""
    channels: dict[str, Channel] = {
        "inbox": Inbox(_Rows(store.inbox)),
        "slack": Slack(client),
        "apprise": Apprise(),
    }
    if token := settings.telegram_bot_token:
        channels["telegram"] = Telegram(client, token=token.get_secret_value(), base_url=settings.telegram_base_url)
    if token := settings.discord_bot_token:
        channels["discord"] = Discord(client, token=token.get_secret_value(), base_url=settings.discord_base_url)
    if secret := settings.operators.webhook_secret:
        channels["webhook"] = Webhook(client, secret=secret.get_secret_value())
    if settings.mail.host is not None:
        channels["email"] = Email(_mail_server(settings))
    return channels


def _mail_server(settings: NotifySettings) -> MailServer:
    mail = settings.mail
    assert mail.host is not None
    return MailServer(
        host=mail.host,
        port=mail.port,
        sender=mail.sender,
        user=mail.user,
        password=mail.password.get_secret_value() if mail.password else None,
        security=mail.security,
        timeout_seconds=settings.timeout,
    )


class _Rows:
    """The store's inbox as the channel wants it."""

    def __init__(self, notes: InboxNotes) -> None:
        self._notes = notes

    def put(self, user: str, message: Rendered) -> None:
        self._notes.put(user, note_of(message))
