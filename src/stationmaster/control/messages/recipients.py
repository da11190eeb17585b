"""Who gets messages, through which channels, and in which hours only urgent ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

from stationmaster.model import SINGLE_USER as SINGLE_USER
from stationmaster.model import User
from stationmaster.settings import NotifySettings
from stationmaster.store.users import Users

OPERATORS = "operators"
OWNER = "owner"
"""Why a person gets a message: they own the job. Operators have one purpose per channel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    channel: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipient:
    """A person who gets messages. Without routes no message reaches them."""

    name: str
    purpose: str
    routes: tuple[Route, ...]
    muted: tuple[str, ...] = ()
    quiet: str | None = None
    time_zone: str = "UTC"


class Recipients:
    """`channels` are those that are set up: an id whose bot is not set up gives no route."""

    def __init__(self, settings: NotifySettings, users: Users, channels: Collection[str]) -> None:
        self._settings = settings
        self._users = users
        self._channels = channels

    def owner(self, name: str | None) -> Recipient:
        """The person who gets a job's messages: its owner, or the single user. An unknown name has no routes."""
        is_single = name is None or name == SINGLE_USER
        user = self._single_user() if is_single else self._users.find(str(name)) or User(name=str(name))
        return Recipient(
            name=user.name,
            purpose=OWNER,
            routes=self._chain(user),
            muted=user.muted,
            quiet=user.quiet,
            time_zone=user.time_zone,
        )

    def operators(self) -> tuple[Recipient, ...]:
        """One for each channel of the operators: all of them are used. Without any, the single user is the operator."""
        operators = tuple(
            Recipient(name=OPERATORS, purpose=f"{OPERATORS}:{number}:{route.channel}", routes=(route,))
            for number, route in enumerate(self._operators_routes())
        )
        return operators or (self.owner(None),)

    @property
    def operators_get_everything(self) -> bool:
        return self._settings.operators.everything

    def find(self, name: str, purpose: str) -> Recipient | None:
        """The recipient of a queued message; None if the channel is no longer set up."""
        if name != OPERATORS:
            return self.owner(name)
        return next((one for one in self.operators() if one.purpose == purpose), None)

    def _single_user(self) -> User:
        settings = self._settings
        return User(
            name=SINGLE_USER,
            telegram_id=settings.telegram_id,
            discord_id=settings.discord_id,
            email=settings.email,
            inbox=True,
            muted=settings.muted,
            quiet=settings.quiet,
            time_zone=settings.time_zone,
        )

    def _chain(self, user: User) -> tuple[Route, ...]:
        inbox = user.name if user.inbox else None
        pairs = (
            ("telegram", user.telegram_id),
            ("discord", user.discord_id),
            ("email", user.email),
            ("inbox", inbox),
        )
        return tuple(self._usable(pairs))

    def _operators_routes(self) -> tuple[Route, ...]:
        settings = self._settings.operators
        slack = settings.slack_url.get_secret_value() if settings.slack_url else None
        pairs = (
            ("telegram", settings.telegram_id),
            ("discord", settings.discord_id),
            ("email", settings.email),
            ("slack", slack),
            ("webhook", settings.webhook_url),
            *(("apprise", url.get_secret_value()) for url in settings.apprise_urls),
        )
        return tuple(self._usable(pairs))

    def _usable(self, pairs: Collection[tuple[str, str | None]]) -> Iterator[Route]:
        for channel, address in pairs:
            if address and channel in self._channels:
                yield Route(channel=channel, address=address)


def quiet_seconds_left(quiet: str | None, time_zone: str, *, now: float) -> float:
    """How long quiet hours such as 22:00-07:00 still last at `now`; 0 outside of them. They may span midnight.

    >>> quiet_seconds_left("22:00-07:00", "UTC", now=6 * 3600.0), quiet_seconds_left("22:00-07:00", "UTC", now=43200.0)
    (3600.0, 0.0)
    """
    if quiet is None:
        return 0.0
    begins, ends = (time.fromisoformat(part) for part in quiet.split("-"))
    here = datetime.fromtimestamp(now, _zone(time_zone))
    at = here.time()
    is_quiet = begins <= at < ends if begins <= ends else (at >= begins or at < ends)
    if not is_quiet:
        return 0.0
    day = here.date() if at < ends else here.date() + timedelta(days=1)
    return max(0.0, datetime.combine(day, ends, here.tzinfo).timestamp() - now)


def _zone(name: str) -> tzinfo:
    return UTC if name == "UTC" else ZoneInfo(name)  # UTC works even where no time zone data is installed
