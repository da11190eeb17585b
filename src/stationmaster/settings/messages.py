"""Settings of notifications."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import (
    Field,
    SecretStr,
    model_validator,
)

from stationmaster.money import MicroDollars
from stationmaster.settings.addresses import (
    BaseUrl,
    DiscordId,
    EmailAddress,
    SecretAddress,
    TelegramId,
    Token,
    WebAddress,
    is_loopback_host,
)
from stationmaster.settings.section import Dollars, QuietHours, Section, TimeZone, section_of_defaults


class MailSettings(Section):
    """The SMTP server that sends e-mail."""

    host: str | None = None
    """Host name of the SMTP server; empty sends no e-mail."""
    port: int = Field(default=587, ge=1, le=65535)
    """Port of the SMTP server."""
    security: Literal["starttls", "tls", "none"] = "starttls"
    """Encryption of the connection to the SMTP server: starttls, tls or none. Its certificate is always checked."""
    ca_file: Path | None = None
    """File with the certificate authorities (PEM) of the SMTP server; empty: those that this computer trusts."""
    sender: str = "stationmaster@localhost"
    """Sender address of e-mails."""
    user: str | None = None
    """Login user at the SMTP server; empty sends without a login."""
    password: SecretStr | None = None
    """Password of the login user; it needs starttls or tls, except for a server on this computer."""

    @model_validator(mode="after")
    def _password_is_encrypted(self) -> MailSettings:
        if self.password is not None and self.security == "none" and not is_loopback_host(self.host or ""):
            raise ValueError("password would be sent unencrypted; set security to starttls or tls")
        return self


class OperatorSettings(Section):
    """Where operators get notifications; each address that is set gets all of them."""

    telegram_id: TelegramId | None = None
    """Telegram chat of the operators, by number or @name."""
    discord_id: DiscordId | None = None
    """Discord user ID of an operator."""
    email: EmailAddress | None = None
    """E-mail address of the operators; needs notify.mail."""
    slack_url: SecretAddress | None = None
    """URL of an incoming webhook in Slack."""
    webhook_url: WebAddress | None = None
    """URL that gets each notification as signed JSON; needs webhook_secret."""
    webhook_secret: SecretStr | None = None
    """Secret that signs the webhook's messages: `whsec_` and base64, or any text."""
    apprise_urls: tuple[SecretStr, ...] = ()
    """URLs of services that Apprise supports; needs the extra `apprise`."""
    everything: bool = False
    """Whether operators also get the notifications of all users."""

    @model_validator(mode="after")
    def _signed(self) -> OperatorSettings:
        if self.webhook_url is not None and self.webhook_secret is None:
            raise ValueError("webhook_url needs webhook_secret, which signs its messages")
        return self


class NotifySettings(Section):
    """How users are notified. The addresses here are those of the single user; add others with `users add`."""

    telegram_bot_token: Token | None = None
    """Token of the Telegram bot that sends messages."""
    telegram_base_url: BaseUrl = "https://api.telegram.org"
    """URL of Telegram's bot API."""
    telegram_id: TelegramId | None = None
    """Your Telegram chat, by number or @name."""
    discord_bot_token: Token | None = None
    """Token of the Discord bot that sends messages."""
    discord_base_url: BaseUrl = "https://discord.com/api/v10"
    """URL of Discord's API."""
    discord_id: DiscordId | None = None
    """Your Discord user ID."""
    email: EmailAddress | None = None
    """Your e-mail address, used if Telegram and Discord fail or are not set; needs notify.mail."""
    quiet: QuietHours | None = None
    """Quiet hours, e.g. 22:00-07:00: only urgent messages are sent, the others follow afterwards."""
    time_zone: TimeZone = "UTC"
    """Time zone of the quiet hours, e.g. Europe/Berlin."""
    muted: tuple[str, ...] = ()
    """Kinds of messages that are only stored in the inbox, not sent."""
    page_url: WebAddress | None = None
    """URL of the web page; messages link to it. Empty adds no link."""
    low_credit: Dollars = MicroDollars(5_000_000)
    """Notify operators when the credit at a provider falls below this; 0 never notifies."""
    mail: MailSettings = section_of_defaults()
    operators: OperatorSettings = section_of_defaults()
