"""Builds the world from the settings: the one place where edges are chosen."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from stationmaster.config import secret_of
from stationmaster.control.destinations.destinations import open_destinations
from stationmaster.control.flow.policy import policy_of
from stationmaster.control.flow.world import World
from stationmaster.control.wiring.adopted_hosts import open_adopted_host
from stationmaster.control.wiring.providers import PATIENT, Waiting, build_providers, ssh_key_path
from stationmaster.delivery.bucket import open_other_bucket
from stationmaster.delivery.token_roles import TokenRoles
from stationmaster.providers.vastai.ssh_keys import read_pair
from stationmaster.recipes.registry import find
from stationmaster.remote.connect import connect
from stationmaster.remote.pyz import build_pyz
from stationmaster.settings import Settings
from stationmaster.store.store import Store


def build_world(settings: Settings, environ: Mapping[str, str], store: Store, *, waiting: Waiting = PATIENT) -> World:
    return World(
        store=store,
        providers=build_providers(settings, environ, store, waiting=waiting),
        reload_providers=partial(build_providers, settings, environ, store, waiting=waiting),
        open_adopted=lambda name, find_provider: open_adopted_host(name, settings, find_provider),
        connect=partial(connect, ssh=settings.ssh, way=settings.transfer.way),
        find_recipe=partial(find, folders=settings.recipes),
        secrets=partial(secret_of, settings),
        only_reads=TokenRoles(url=settings.hub.url).only_reads,
        home=settings.home,
        trackside=build_pyz(settings.home / "trackside"),
        policy=policy_of(settings),
        destinations=open_destinations(settings, store),
        public_key=_public_key(settings),
        open_bucket=partial(open_other_bucket, settings.bucket) if settings.bucket.access_key is not None else None,
    )


def _public_key(settings: Settings) -> str | None:
    path = ssh_key_path(settings)
    return read_pair(path).public_key if settings.vastai.keys_by_account() and path.exists() else None
