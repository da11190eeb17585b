"""The door to a hundred other services: any Apprise URL, with the extra `apprise` installed."""

from __future__ import annotations

import importlib
from typing import Any

from stationmaster.errors import NotifyBusy, NotifyRefused
from stationmaster.notify.base import Rendered


class Apprise:
    async def send(self, recipient: str, message: Rendered) -> None:
        """Apprise only says whether it worked, so every failure counts as one that may pass."""
        apprise = _library()
        service = apprise.Apprise()
        if not service.add(recipient):
            raise NotifyRefused("Apprise does not know this address", hint="see https://github.com/caronc/apprise/wiki")
        body = message.text.partition("\n")[2].strip() or message.title
        if not await service.async_notify(body=body, title=message.title, body_format=apprise.NotifyFormat.TEXT):
            raise NotifyBusy("Apprise could not deliver the message")


def _library() -> Any:
    try:
        return importlib.import_module("apprise")  # an extra, and half a second: only where it is used
    except ImportError:
        raise NotifyRefused("Apprise is not installed", hint="pip install 'stationmaster[apprise]'") from None
