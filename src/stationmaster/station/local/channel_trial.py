"""Sending a test message through every channel that reaches a person."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from stationmaster.control.messages.address_book import Recipient
from stationmaster.control.messages.post import Post, open_post
from stationmaster.errors import NotifyRefused
from stationmaster.model import Delivery
from stationmaster.notify.base import Rendered
from stationmaster.notify.markup import clean
from stationmaster.station.local.installation import Installation
from stationmaster.store.store import Store


async def try_channels(installation: Installation, user: str, text: str) -> list[Delivery]:
    """Raises NotifyRefused where no channel leads to the user."""
    async with _open_post(installation) as post:
        recipient = post.book.owner(user)
        if not recipient.routes:
            raise NotifyRefused(
                f"No notification channel for user {user}",
                hint=f"give them one: stationmaster users set {user} --telegram-id …, and set the bot's token",
            )
        return await _try_each(post, [recipient], _message(text, installation.store))


async def try_operator_channels(installation: Installation, text: str) -> list[Delivery]:
    async with _open_post(installation) as post:
        return await _try_each(post, post.book.operators(), _message(text, installation.store))


@asynccontextmanager
async def _open_post(installation: Installation) -> AsyncIterator[Post]:
    post = open_post(installation.settings, installation.store)
    try:
        yield post
    finally:
        await post.close()


def _message(text: str, store: Store) -> Rendered:
    key = f"{store.installation_id}.test.{secrets.token_hex(8)}"
    return Rendered(key=key, kind="message", text=clean(text), at=store.now())


async def _try_each(post: Post, recipients: Iterable[Recipient], message: Rendered) -> list[Delivery]:
    return [each for one in recipients for each in await post.courier.try_each(one, message)]
