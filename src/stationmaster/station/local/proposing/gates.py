"""Secrets and access to gated models that a recipe needs, checked before anything is rented."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote

from stationmaster.config import secret_of
from stationmaster.errors import UserError
from stationmaster.recipes.parameters import ParameterValue
from stationmaster.recipes.schema import Gated, Recipe
from stationmaster.recipes.templating import render
from stationmaster.settings import Settings

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
_LIMIT_SECONDS = 10.0
_HAS_NO_SUCH_FILE = "EntryNotFound"


def require_secrets(recipe: Recipe, settings: Settings) -> None:
    """Raises UserError for a secret that the recipe's steps need and that is not set."""
    for name in recipe.secrets:
        if secret_of(settings, name) is None:
            raise UserError(f"{recipe.reference} needs the secret {name}, which is not set", hint=_how_to_set(name))


def check_tokens(recipe: Recipe, settings: Settings, *, provider: str) -> tuple[str, ...]:
    """Check that the Hub tokens among the secrets may be sent to the provider's machines. Raises SecretRefused if not.

    If the Hub does not answer, returns a note: the worker checks again before anything is rented.
    """
    if not recipe.secrets:
        return ()
    from stationmaster.control.machine.step_secrets import tokens_to_check

    secrets = {name: value for name in recipe.secrets if (value := secret_of(settings, name)) is not None}
    tokens = tokens_to_check(secrets, provider=provider)
    notes = (_check_token(name, token, settings) for name, token in tokens.items())
    return tuple(note for note in notes if note is not None)


def _check_token(name: str, token: str, settings: Settings) -> str | None:
    import httpx

    from stationmaster.control.machine.step_secrets import may_write, not_accepted
    from stationmaster.delivery.token_roles import only_reads

    url = f"{settings.hub.url.rstrip('/')}/api/whoami-v2"
    try:
        answer = httpx.get(url, headers={"Authorization": f"Bearer {token}"}, timeout=_LIMIT_SECONDS)
        if answer.status_code == 401:
            raise not_accepted(name, "it answers 401")
        if only_reads(answer.raise_for_status().json()["auth"]["accessToken"]):
            return None
    except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError) as problem:
        return f"could not check whether {name} is read-only: {type(problem).__name__}"
    raise may_write(name)


def check_gates(recipe: Recipe, parameters: Mapping[str, ParameterValue], settings: Settings) -> tuple[str, ...]:
    """Check that the secrets give access to the gated models. Raises UserError if one is refused.

    If the Hub does not answer, returns a note.
    """
    notes = (_check(recipe, gated, parameters, settings) for gated in recipe.gated)
    return tuple(note for note in notes if note is not None)


def _check(recipe: Recipe, gated: Gated, parameters: Mapping[str, ParameterValue], settings: Settings) -> str | None:
    import httpx  # slow to import, and only recipes with gated models need it

    repository = render(gated.repository, {"parameters": parameters})
    if not _REPOSITORY.fullmatch(repository):
        return None  # a folder on the machine: cannot be checked from here
    url = f"{settings.hub.url.rstrip('/')}/{repository}"
    token = secret_of(settings, gated.secret)
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    try:
        answer = httpx.head(f"{url}/resolve/main/{quote(gated.file)}", headers=headers, timeout=_LIMIT_SECONDS)
    except httpx.HTTPError as problem:
        return f"access to {repository} could not be checked: {type(problem).__name__}"
    if answer.status_code in (401, 403, 404) and answer.headers.get("X-Error-Code") != _HAS_NO_SUCH_FILE:
        raise _refused(recipe, gated, repository, url, answer.status_code, has_token=token is not None)
    if answer.status_code >= 400 and answer.headers.get("X-Error-Code") != _HAS_NO_SUCH_FILE:
        return f"access to {repository} could not be checked: the Hub answers {answer.status_code}"
    return None


def _refused(recipe: Recipe, gated: Gated, repository: str, url: str, status: int, *, has_token: bool) -> UserError:
    if not has_token:
        problem, hint = f"the Hub refuses it without {gated.secret}", f"{_how_to_set(gated.secret)}; {_accept(url)}"
    elif status == 401:
        problem, hint = f"the Hub rejects {gated.secret}", f"create a new token and {_how_to_set(gated.secret)}"
    elif status == 404:
        problem, hint = (
            "the Hub has no such model, or it is private",
            "correct the model's name, or ask its owner for access",
        )
    else:
        problem, hint = f"{gated.secret} has no access to it", _accept(url)
    return UserError(f"{recipe.reference} needs {repository}, but {problem}", hint=hint)


def _how_to_set(name: str) -> str:
    return "set HF_READ_TOKEN" if name == "HF_TOKEN" else f"put {name} into the setting `secrets`"


def _accept(url: str) -> str:
    return f"accept the licence at {url}"
