"""Many other services, by Apprise URL; needs the extra `apprise`."""

from __future__ import annotations

import importlib
from typing import Any

from stationmaster.errors import NotifyBusy, NotifyRefused
from stationmaster.notify.base import Message


class Apprise:
    async def send(self, recipient: str, message: Message) -> None:
        """Apprise only reports success or failure, so every failure counts as temporary."""
        apprise, service = _service(recipient)
        body = message.text.partition("\n")[2].strip() or message.title
        if not await service.async_notify(body=body, title=message.title, body_format=apprise.NotifyFormat.TEXT):
            raise NotifyBusy("Apprise could not deliver the message")

    async def check(self, recipient: str | None) -> str:
        """Whether Apprise knows the service: it has no way to ask it anything else."""
        if recipient is not None:
            _service(recipient)
        return "Apprise knows the service"


def _service(url: str) -> tuple[Any, Any]:
    """The library, and in it the service at this URL. Raises NotifyRefused."""
    apprise = _library()
    service = apprise.Apprise()
    if not service.add(url):
        raise NotifyRefused("unknown Apprise URL", hint="see https://github.com/caronc/apprise/wiki")
    return apprise, service


def _library() -> Any:
    try:
        return importlib.import_module("apprise")  # an optional dependency that takes half a second to import
    except ImportError:
        raise NotifyRefused("Apprise is not installed", hint="pip install 'stationmaster[apprise]'") from None
