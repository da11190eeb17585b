"""Who is told what, and how."""

from __future__ import annotations

from typing import Literal

from pydantic import (
    Field,
    SecretStr,
    model_validator,
)

from stationmaster.durations import Duration
from stationmaster.money import MicroDollars
from stationmaster.settings.addresses import (
    BaseUrl,
    DiscordId,
    EmailAddress,
    SecretAddress,
    TelegramId,
    Token,
    WebAddress,
)
from stationmaster.settings.section import Dollars, QuietHours, Section, TimeZone, section_of_defaults


class MailSettings(Section):
    """The mail server that e-mails go through."""

    host: str | None = None
    """Its name; without one no e-mail is sent."""
    port: int = Field(default=587, ge=1, le=65535)
    """Its port."""
    security: Literal["starttls", "tls", "none"] = "starttls"
    """How the way to it is protected."""
    sender: str = "stationmaster@localhost"
    """Whom the e-mails come from."""
    user: str | None = None
    """Who logs in there, if anybody has to."""
    password: SecretStr | None = None
    """Their password."""


class OperatorSettings(Section):
    """Where operators are told what they should look at; every way that is set gets the message."""

    telegram_id: TelegramId | None = None
    """A chat that the Telegram bot may write to."""
    discord_id: DiscordId | None = None
    """A person whom the Discord bot may write to."""
    email: EmailAddress | None = None
    """An address; needs notify.mail."""
    slack_url: SecretAddress | None = None
    """An incoming webhook of Slack."""
    webhook_url: WebAddress | None = None
    """An address that gets signed JSON."""
    webhook_secret: SecretStr | None = None
    """What the webhook's messages are signed with; `whsec_` and base64, or any text."""
    apprise_urls: tuple[SecretStr, ...] = ()
    """Addresses of any service that Apprise knows; needs the extra `apprise`."""
    everything: bool = False
    """Whether operators also get what the users are told."""

    @model_validator(mode="after")
    def _signed(self) -> OperatorSettings:
        if self.webhook_url is not None and self.webhook_secret is None:
            raise ValueError("webhook_url needs webhook_secret, with which its messages are signed")
        return self


class NotifySettings(Section):
    """How people are told. The ids here are those of the single user; others are added with `users add`."""

    telegram_bot_token: Token | None = None
    """The Telegram bot that writes to people."""
    telegram_base_url: BaseUrl = "https://api.telegram.org"
    """Where Telegram's bot API answers."""
    telegram_id: TelegramId | None = None
    """Your chat with the bot."""
    discord_bot_token: Token | None = None
    """The Discord bot that writes to people."""
    discord_base_url: BaseUrl = "https://discord.com/api/v10"
    """Where Discord's API answers."""
    discord_id: DiscordId | None = None
    """You, as Discord numbers you."""
    email: EmailAddress | None = None
    """Your e-mail address, asked after Telegram and Discord; needs notify.mail."""
    quiet: QuietHours | None = None
    """Hours in which only what is urgent is sent, as 22:00-07:00; the rest follows afterwards."""
    time_zone: TimeZone = "UTC"
    """Where those hours are, as Europe/Berlin."""
    muted: tuple[str, ...] = ()
    """Kinds of messages that are not sent, only kept in the inbox."""
    page_url: WebAddress | None = None
    """Where people reach the web page; messages then carry a link to it."""
    low_credit: Dollars = MicroDollars(5_000_000)
    """Operators are told when a provider's credit falls below this."""
    look: Duration = Field(default=1.0, ge=0.05)
    """How often a worker looks for something to tell."""
    timeout: Duration = Field(default=10.0, gt=0)
    """How long a service may take to answer."""
    mail: MailSettings = section_of_defaults()
    operators: OperatorSettings = section_of_defaults()
