"""Secrets and access to gated models that a recipe needs, checked before anything is rented."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    from stationmaster.trusted_certificates import trusted_certificates

    url = f"{settings.hub.url.rstrip('/')}/api/whoami-v2"
    try:
        headers = {"Authorization": f"Bearer {token}"}
        answer = httpx.get(url, headers=headers, timeout=_LIMIT_SECONDS, verify=trusted_certificates())
        if answer.status_code == 401:
            raise not_accepted(name, "it answers 401")
        if only_reads(answer.raise_for_status().json()["auth"]["accessToken"]):
            return None
    except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError) as problem:
        return f"could not check whether {name} is read-only: {type(problem).__name__}"
    raise may_write(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """Which of the recipe's secrets the job does without, and notes on what could not be checked."""

    unneeded_secrets: tuple[str, ...]
    notes: tuple[str, ...]


def check_gates(recipe: Recipe, parameters: Mapping[str, ParameterValue], settings: Settings) -> Gates:
    """Check that the secrets give access to the gated models, and that no needed secret is missing.

    A secret that opens gated models is not needed for a model in a folder, nor for one that the Hub gives to everyone.
    Raises UserError if a model is refused or a secret missing. If the Hub does not answer, returns a note.
    """
    unchecked: dict[str, list[str]] = {}
    on_hub = [(gated, repository) for gated in recipe.gated if (repository := _on_hub(gated, parameters)) is not None]
    for gated, repository in on_hub:
        note = _check(recipe, gated, repository, settings)
        unchecked.setdefault(gated.secret, []).extend([] if note is None else [note])
    unneeded = tuple(name for name in recipe.secrets if not _is_needed(name, recipe, unchecked, settings))
    return Gates(unneeded_secrets=unneeded, notes=tuple(note for notes in unchecked.values() for note in notes))


def _is_needed(name: str, recipe: Recipe, unchecked: Mapping[str, Sequence[str]], settings: Settings) -> bool:
    """Whether the commands need the secret; `unchecked` has the models on the Hub. Raises UserError if it is unset."""
    opens_models = any(gated.secret == name for gated in recipe.gated)
    if opens_models and name not in unchecked:
        return False  # all of them are in folders
    if secret_of(settings, name) is not None:
        return True
    if opens_models and not unchecked[name]:
        return False  # the Hub has just given them without it
    raise UserError(f"{recipe.reference} needs the secret {name}, which is not set", hint=_how_to_set(name))


def _on_hub(gated: Gated, parameters: Mapping[str, ParameterValue]) -> str | None:
    """The repository; None for a folder or file on the machine, which nothing guards."""
    repository = render(gated.repository, {"parameters": parameters})
    return repository if _REPOSITORY.fullmatch(repository) else None


def _check(recipe: Recipe, gated: Gated, repository: str, settings: Settings) -> str | None:
    """Why access could not be checked; None if there is access. Raises UserError if it is refused."""
    import httpx  # slow to import, and only recipes with gated models need it

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
