"""Builds everything that sends messages from the settings: the only place where channels are chosen."""

from __future__ import annotations

from dataclasses import dataclass

import httpx

from stationmaster.control.messages.composer import MessageComposer, inbox_note
from stationmaster.control.messages.notifier import Notifier
from stationmaster.control.messages.recipients import Recipients
from stationmaster.control.messages.sender import MessageSender
from stationmaster.notify.apprise import Apprise
from stationmaster.notify.base import Channel, Message
from stationmaster.notify.discord import Discord
from stationmaster.notify.email import Email, MailServer
from stationmaster.notify.inbox import Inbox
from stationmaster.notify.slack import Slack
from stationmaster.notify.telegram import Telegram
from stationmaster.notify.webhook import Webhook
from stationmaster.settings import NotifySettings, Settings
from stationmaster.store.inbox import InboxNotes
from stationmaster.store.store import Store
from stationmaster.trusted_certificates import trusted_certificates

_TIMEOUT_SECONDS = 10.0  # of a request to a messaging service


@dataclass(frozen=True, slots=True, kw_only=True)
class Messaging:
    """Recipients, composer, sender and notifier on one HTTP client; call `close` when done."""

    client: httpx.AsyncClient
    recipients: Recipients
    composer: MessageComposer
    sender: MessageSender
    notifier: Notifier

    async def close(self) -> None:
        await self.client.aclose()


def open_messaging(settings: Settings, store: Store) -> Messaging:
    """Needs a running event loop. Raises ConfigInvalid."""
    client = httpx.AsyncClient(timeout=_TIMEOUT_SECONDS, verify=trusted_certificates())
    channels = _channels(settings.notify, client, store)
    recipients = Recipients(settings.notify, store.users, channels)
    sender = MessageSender(channels)
    composer = MessageComposer(store, recipients, page_url=settings.notify.page_url)
    return Messaging(
        client=client,
        recipients=recipients,
        composer=composer,
        sender=sender,
        notifier=Notifier(
            store,
            recipients,
            sender,
            composer,
            lease_seconds=60.0 + 12 * _TIMEOUT_SECONDS,  # six requests at most, twice over
        ),
    )


def _channels(settings: NotifySettings, client: httpx.AsyncClient, store: Store) -> dict[str, Channel]:
    """Every channel that is set up, by name."""
    channels: dict[str, Channel] = {
        "inbox": Inbox(_InboxRows(store.inbox)),
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
        ca_file=mail.ca_file,
        timeout_seconds=_TIMEOUT_SECONDS,
    )


class _InboxRows:
    """The store's inbox as the channel needs it."""

    def __init__(self, notes: InboxNotes) -> None:
        self._notes = notes

    def put(self, user: str, message: Message) -> None:
        self._notes.put(user, inbox_note(message))
