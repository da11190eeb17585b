"""Settings without which a provider offers nothing: an API key, your own machines."""

from __future__ import annotations

from stationmaster.errors import ConfigInvalid
from stationmaster.near_names import did_you_mean
from stationmaster.settings import Settings
from stationmaster.settings.machines import DEFAULT_ACCOUNT, NO_HOSTS_HINT


def require_set_up(name: str, settings: Settings) -> None:
    """Raises ConfigInvalid for the first setting that the provider of this name lacks."""
    if name.partition(":")[0] == "vastai":
        _require_account(name, settings)
    if name == "ssh" and not settings.ssh.hosts:
        raise ConfigInvalid("none of your own machines is in the settings", hint=NO_HOSTS_HINT)


def _require_account(name: str, settings: Settings) -> None:
    account = name.partition(":")[2] or DEFAULT_ACCOUNT
    known = tuple(settings.vastai.keys_by_account())
    if account in known:
        return
    if not known:
        raise ConfigInvalid(
            "Vast.ai needs a key and none is set", hint="set VASTAI_API_KEY (console.vast.ai, Account, API keys)"
        )
    if account == DEFAULT_ACCOUNT:
        problem, hint = "Vast.ai has no default account here, and none was given", "choose one with --account"
    else:
        problem = f"Vast.ai has no account {account} here"
        if near := did_you_mean(account, known, "--account {}"):
            raise ConfigInvalid(problem, hint=near)
        hint = f"set vastai.accounts.{account}.api_key, or choose another with --account"
    raise ConfigInvalid(problem, hint=f"{hint}: {', '.join(known)}")
