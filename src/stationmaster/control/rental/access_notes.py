"""How a machine is reached, as a job remembers it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from stationmaster.model import Access, LocalAccess, SshAccess


def access_to_json(access: Access) -> dict[str, Any]:
    return {"kind": "ssh" if isinstance(access, SshAccess) else "local", **dataclasses.asdict(access)}


def access_from_json(data: Mapping[str, Any]) -> Access:
    values = {key: value for key, value in data.items() if key != "kind"}
    environment = tuple((name, value) for name, value in values.get("environment", ()))
    if data["kind"] == "ssh":
        host_keys = tuple(values.get("host_keys", ()))
        return SshAccess(**{**values, "host_keys": host_keys, "environment": environment})
    return LocalAccess(root=values["root"], job_root=values["job_root"], environment=environment)
